import type { FastifyInstance, HTTPMethods } from "fastify";
import { ApiError } from "../errors.ts";

const READ: HTTPMethods[] = ["GET"];
const DO: HTTPMethods[] = ["POST"];
const CHANGE: HTTPMethods[] = ["GET", "PUT", "PATCH", "DELETE"];

/**
 * Calls of the contract that this version does not have yet. They say so, instead of looking like a
 * slip in the path, and are not in the OpenAPI document.
 */
const PLANNED: readonly { readonly url: string; readonly methods: HTTPMethods[] }[] = [
  { url: "/v1/limits", methods: [...READ, ...DO] },
  { url: "/v1/limits/:id", methods: CHANGE },
];

export async function plannedRoutes(app: FastifyInstance): Promise<void> {
  for (const { url, methods } of PLANNED) {
    app.route({
      url,
      method: methods,
      config: { isPlanned: true },
      // Before a body is read: nothing in it could be right.
      onRequest: (request, _, done) => {
        const what = `${request.method} ${url.replaceAll("::", ":")}`;
        done(new ApiError("NOT_SUPPORTED", `${what} is not in this version of Millrace yet`));
      },
      handler: () => undefined,
    });
  }
}
