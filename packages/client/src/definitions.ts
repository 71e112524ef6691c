import type {
  DefinitionPage,
  DefinitionView,
  ListDefinitionsQuery,
  Problem,
  RegisterAnswer,
  SimulateSource,
  SimulationView,
  ValidateAnswer,
  WorkflowDefinition,
} from "@millrace/contract";
import { MillraceApiError } from "./errors.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** A document, or a builder that becomes one. */
export type DefinitionSource = WorkflowDefinition | { toJSON(): WorkflowDefinition };

export interface Registered extends RegisterAnswer {
  /** False when the latest version already had this content. */
  readonly created: boolean;
}

export type Validated =
  | ({ readonly valid: true } & ValidateAnswer)
  | { readonly valid: false; readonly problems: readonly Problem[] };

export type DefinitionCalls = ReturnType<typeof definitionCalls>;

export function definitionCalls(send: Transport) {
  return {
    /** Registers a definition; new content makes the next version. */
    async register(source: DefinitionSource, options: CallOptions = {}): Promise<Registered> {
      const { data, status } = await send<RegisterAnswer>({
        method: "POST",
        path: "/v1/definitions",
        body: source,
        ...options,
      });
      return { ...data, created: status === 201 };
    },

    /** Says what registering would answer, and registers nothing. */
    async validate(source: DefinitionSource, options: CallOptions = {}): Promise<Validated> {
      try {
        const { data } = await send<ValidateAnswer>({
          method: "POST",
          path: "/v1/definitions/validate",
          body: source,
          ...options,
        });
        return { valid: true, ...data };
      } catch (error) {
        if (!(error instanceof MillraceApiError) || error.code !== "INVALID_DEFINITION")
          throw error;
        return { valid: false, problems: error.problem.errors ?? [] };
      }
    },

    /** Runs a scenario on a virtual clock: no task runs, nothing is stored. */
    async simulate(
      id: string,
      request: SimulateSource,
      options: CallOptions = {},
    ): Promise<SimulationView> {
      const path = `/v1/definitions/${encodeURIComponent(id)}/simulate`;
      return (await send<SimulationView>({ method: "POST", path, body: request, ...options })).data;
    },

    /** The latest version, or a given one. */
    async get(
      id: string,
      { version, ...options }: CallOptions & { readonly version?: number | undefined } = {},
    ): Promise<DefinitionView> {
      const path = `/v1/definitions/${encodeURIComponent(id)}`;
      const { data } = await send<DefinitionView>({
        method: "GET",
        path: version === undefined ? path : `${path}/versions/${version}`,
        ...options,
      });
      return data;
    },

    /** The latest version of each definition, page by page. */
    async list(
      query: ListDefinitionsQuery = {},
      options: CallOptions = {},
    ): Promise<DefinitionPage> {
      const { data } = await send<DefinitionPage>({
        method: "GET",
        path: "/v1/definitions",
        query,
        ...options,
      });
      return data;
    },
  };
}
