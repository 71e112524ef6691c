import * as z from "zod";
import { BOUNDS } from "./bounds.ts";
import { WorkflowDefinition } from "./definition.ts";
import { pageOf, pageQueryFields } from "./pagination.ts";
import { Problem, strict } from "./schema-problems.ts";
import { DefinitionId, Timestamp } from "./text.ts";

export const DefinitionVersion = z.int().min(1).max(BOUNDS.version);

/** Answer to a registration: 201 when it made a version, 200 when the latest one already has this content. */
export const RegisterAnswer = z.object({
  id: DefinitionId,
  version: DefinitionVersion,
  contentHash: z.string(),
  warnings: z.array(Problem),
});
export type RegisterAnswer = z.infer<typeof RegisterAnswer>;

/** Answer of the dry run: what a registration would answer; its faults are the same 422. */
export const ValidateAnswer = RegisterAnswer;
export type ValidateAnswer = RegisterAnswer;

/** A definition version as lists show it. */
export const DefinitionSummary = z.object({
  id: DefinitionId,
  version: DefinitionVersion.meta({ description: "the latest, in lists" }),
  contentHash: z.string(),
  name: z.string().nullable(),
  description: z.string().nullable(),
  tags: z.array(z.string()),
  createdAt: Timestamp,
});
export type DefinitionSummary = z.infer<typeof DefinitionSummary>;

export const DefinitionView = DefinitionSummary.extend({ definition: WorkflowDefinition });
export type DefinitionView = z.infer<typeof DefinitionView>;

export const DefinitionPage = pageOf(DefinitionSummary);
export type DefinitionPage = z.infer<typeof DefinitionPage>;

export const ListDefinitionsQuery = strict("a definition query", pageQueryFields);
export type ListDefinitionsQuery = z.infer<typeof ListDefinitionsQuery>;
