import type { FastifyInstance, RouteOptions } from "fastify";
import { ApiError } from "./errors.ts";

/**
 * Answers what no route takes: 405 with `Allow` where the path is served by another method, else
 * 404. `routes` fills up while routes are added.
 */
export function addNotFound(app: FastifyInstance, routes: readonly RouteOptions[]): void {
  let templates: readonly { readonly path: RegExp; readonly methods: readonly string[] }[] = [];
  app.addHook("onReady", (done) => {
    templates = routes.map(({ url, method }) => ({ path: pathOf(url), methods: [method].flat() }));
    done();
  });

  app.setNotFoundHandler((request) => {
    const [path = ""] = request.url.split("?", 1);
    const methods = templates.filter((it) => it.path.test(path)).flatMap((it) => it.methods);
    const allow = [...new Set(methods)].toSorted().join(", ");
    if (allow === "") throw new ApiError("ROUTE_NOT_FOUND", `there is nothing at ${path}`);
    throw new ApiError("METHOD_NOT_ALLOWED", `${path} takes ${allow}, not ${request.method}`, {
      headers: { allow },
    });
  });
}

function pathOf(url: string): RegExp {
  const pattern = url
    .replaceAll("::", "\0")
    .replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
    .replaceAll(/:\w+/g, "[^/]+")
    .replaceAll("\0", ":");
  return new RegExp(`^${pattern}$`);
}
