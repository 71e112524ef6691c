import fc from "fast-check";

/**
 * Where random properties begin. Under CI always at the same place, so that a change is judged by what
 * it changes; anywhere else at a new one each time, which a failure prints. `MODEL_SEED` asks for that one.
 */
const asked = process.env["MODEL_SEED"] ?? (process.env["CI"] ? "1" : undefined);

fc.configureGlobal({ seed: asked === undefined ? Date.now() % 2 ** 31 : Number(asked) });
