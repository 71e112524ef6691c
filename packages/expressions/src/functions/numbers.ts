import { charge, chargeNewElements, Failure } from "../run.ts";
import type { Run } from "../run.ts";
import { badArgument, list, number } from "../spec.ts";
import type { FunctionSpec } from "../spec.ts";

export const numberFunctions: readonly FunctionSpec[] = [
  {
    name: "sum",
    parameters: "...numbers",
    summary: "The sum of a list, or of the arguments; 0 for none.",
    example: ["sum([1, 2, 3])", 6],
    plain: true,
    call: (run, ...values) => total(numbersOf(run, "sum", values)),
  },
  {
    name: "min",
    parameters: "...numbers",
    summary: "The least of a list, or of the arguments; undefined for none.",
    example: ["min(3, 1, 2)", 1],
    plain: true,
    call: (run, ...values) =>
      numbersOf(run, "min", values).reduce<number | undefined>(
        (least, value) => (least === undefined ? value : Math.min(least, value)),
        undefined,
      ),
  },
  {
    name: "max",
    parameters: "...numbers",
    summary: "The greatest of a list, or of the arguments; undefined for none.",
    example: ["max([3, 1, 2])", 3],
    plain: true,
    call: (run, ...values) =>
      numbersOf(run, "max", values).reduce<number | undefined>(
        (greatest, value) => (greatest === undefined ? value : Math.max(greatest, value)),
        undefined,
      ),
  },
  {
    name: "avg",
    parameters: "...numbers",
    summary: "The mean of a list, or of the arguments; undefined for none.",
    example: ["avg([1, 2, 3])", 2],
    plain: true,
    call: (run, ...values) => {
      const numbers = numbersOf(run, "avg", values);
      return numbers.length === 0 ? undefined : total(numbers) / numbers.length;
    },
  },
  {
    name: "round",
    parameters: "number, digits?",
    summary: "Rounded to digits behind the point (0), halves up, as the decimal form is written.",
    example: ["round(1.005, 2)", 1.01],
    plain: true,
    call: (_run, value, digits) => shifted("round", Math.round, value, digits),
  },
  {
    name: "floor",
    parameters: "number, digits?",
    summary: "The next lower number with so many digits behind the point (0).",
    example: ["floor(2.39, 1)", 2.3],
    plain: true,
    call: (_run, value, digits) => shifted("floor", Math.floor, value, digits),
  },
  {
    name: "ceil",
    parameters: "number, digits?",
    summary: "The next higher number with so many digits behind the point (0).",
    example: ["ceil(2.31, 1)", 2.4],
    plain: true,
    call: (_run, value, digits) => shifted("ceil", Math.ceil, value, digits),
  },
  {
    name: "abs",
    parameters: "number",
    summary: "Without its sign.",
    example: ["abs(-2)", 2],
    plain: true,
    call: (_run, value) => Math.abs(number("abs", value)),
  },
  {
    name: "range",
    parameters: "startOrEnd, end?, step?",
    summary: "The numbers from a start (0) up to an end, without it, in steps (1).",
    example: ["range(1, 4)", [1, 2, 3]],
    plain: true,
    call: (run, first, second, step) => {
      const start = second === undefined ? 0 : number("range", first);
      const end = number("range", second === undefined ? first : second);
      return rangeOf(run, start, end, step === undefined ? 1 : number("range", step));
    },
  },
];

/** The numbers of one list argument, or of all arguments. Anything else among them is an error. */
function numbersOf(run: Run, name: string, values: readonly unknown[]): readonly number[] {
  const [only] = values;
  const alone = values.length === 1 && typeof only !== "number";
  const numbers = alone ? list(name, only) : values;
  charge(run, 1 + numbers.length);
  return numbers.map((value) => number(name, value));
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, value) => sum + value, 0);
}

/**
 * Rounds by moving the point in the decimal form, as people do: 1.005 is a little less than that in
 * binary, so multiplying by 100 would round it down.
 */
function shifted(
  name: string,
  operation: (value: number) => number,
  given: unknown,
  digitsGiven: unknown,
): number {
  const value = number(name, given);
  const digits = digitsGiven === undefined ? 0 : number(name, digitsGiven);
  if (!Number.isInteger(digits) || Math.abs(digits) > 15) {
    throw badArgument(name, "a whole number of digits from -15 to 15", digits);
  }
  if (digits === 0 || !Number.isFinite(value)) return operation(value);
  const moved = movePoint(value, digits);
  return Number.isFinite(moved) ? movePoint(operation(moved), -digits) : value;
}

function movePoint(value: number, digits: number): number {
  const [mantissa, exponent = "0"] = String(value).split("e");
  return Number(`${mantissa}e${Number(exponent) + digits}`);
}

function rangeOf(run: Run, start: number, end: number, step: number): readonly number[] {
  const length = Math.max(0, Math.ceil((end - start) / step));
  if (!(step !== 0 && Number.isFinite(step) && Number.isFinite(start) && !Number.isNaN(end))) {
    throw new Failure("BAD_ARGUMENT", "range takes finite numbers and a step that is not 0");
  }
  chargeNewElements(run, length);
  return Array.from({ length }, (_, index) => start + index * step);
}
