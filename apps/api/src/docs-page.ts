import { createHash } from "node:crypto";

/**
 * The OpenAPI document as one page to read: made here, with nothing fetched from anywhere, readable
 * without scripts. The only script filters by what is typed.
 */
export function docsPage(documentText: string): { readonly html: string; readonly policy: string } {
  const document = JSON.parse(documentText) as OpenApi;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${text(document.info.title)} API</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<nav aria-label="Calls">
<h1>${text(document.info.title)} API</h1>
<input id="search" type="search" placeholder="Search calls and schemas" aria-label="Search">
${document.tags.map((tag) => navigation(document, tag.name)).join("")}
<h2>schemas</h2>
<ul>${Object.keys(document.components.schemas).map(schemaLink).join("")}</ul>
<p><a href="openapi.json">openapi.json</a></p>
</nav>
<main>
<p class="lead">${text(document.info.summary)} ${text(document.info.description)}</p>
${document.tags.map((tag) => group(document, tag)).join("")}
<h2>schemas</h2>
${Object.entries(document.components.schemas).map(schemaCard).join("")}
<p id="none" hidden>Nothing here holds all of these words.</p>
</main>
<script>${SCRIPT}</script>
</body>
</html>`;
  return { html, policy: POLICY };
}

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: boolean | Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly pattern?: string;
  readonly format?: string;
}

interface Content {
  readonly [mediaType: string]: { readonly schema: Schema };
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<
    Record<
      string,
      {
        readonly description: string;
        readonly headers?: Readonly<Record<string, { readonly description: string }>>;
        readonly content?: Content;
      }
    >
  >;
}

interface Tag {
  readonly name: string;
  readonly description: string;
}

interface OpenApi {
  readonly info: { readonly title: string; readonly summary: string; readonly description: string };
  readonly tags: readonly Tag[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

function callsOf({ paths }: OpenApi, tag: string): Call[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation.tags.includes(tag))
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

function navigation(document: OpenApi, tag: string): string {
  const links = callsOf(document, tag).map(
    ({ method, path, operation }) =>
      `<li data-search="${text(`${method} ${path} ${operation.summary}`)}">` +
      `<a href="#${text(operation.operationId)}"><b class="${method}">${method}</b> ${text(path)}</a></li>`,
  );
  return `<h2>${text(tag)}</h2><ul>${links.join("")}</ul>`;
}

function schemaLink(name: string): string {
  return `<li data-search="${text(name)}"><a href="#schema-${text(name)}">${text(name)}</a></li>`;
}

function group(document: OpenApi, { name, description }: Tag): string {
  const cards = callsOf(document, name).map(callCard).join("");
  return `<h2>${text(name)}</h2><p>${text(description)}</p>${cards}`;
}

function callCard({ method, path, operation }: Call): string {
  const { operationId, summary, description, parameters, requestBody, responses } = operation;
  const words = [method, path, operationId, summary, description ?? ""].join(" ");
  return `<article id="${text(operationId)}" data-search="${text(words)}">
<h3><b class="${method}">${method}</b> <code>${text(path)}</code></h3>
<p><strong>${text(summary)}.</strong> ${prose(description ?? "")}</p>
${parameters.length > 0 ? `<h4>Parameters</h4><table>${parameters.map(parameterRow).join("")}</table>` : ""}
${requestBody ? `<h4>Body</h4>${contentOf(requestBody.content)}` : ""}
<h4>Answers</h4><table>${Object.entries(responses).map(responseRow).join("")}</table>
</article>`;
}

function parameterRow(parameter: Operation["parameters"][number]): string {
  const { name, in: place, required, description, schema } = parameter;
  const kind = `${place}${required === true ? ", required" : ""}`;
  return `<tr><td><code>${text(name)}</code><br><small>${kind}</small></td><td>${typeOf(schema)} ${prose(description ?? "")}</td></tr>`;
}

function responseRow([status, response]: [string, Operation["responses"][string]]): string {
  const headers = Object.entries(response.headers ?? {}).map(
    ([name, { description }]) => `<br><code>${text(name)}</code> ${prose(description)}`,
  );
  const content = Object.values(response.content ?? {})
    .map(({ schema }) => typeOf(schema))
    .join(" ");
  return `<tr><td><code>${status}</code></td><td>${prose(response.description)} ${content}${headers.join("")}</td></tr>`;
}

function contentOf(content: Content): string {
  return Object.values(content)
    .map(({ schema }) => shapeOf(schema))
    .join("");
}

function schemaCard([name, schema]: [string, Schema]): string {
  return `<article id="schema-${text(name)}" data-search="${text(`${name} ${Object.keys(schema.properties ?? {}).join(" ")}`)}">
<h3>${text(name)}</h3>${prose(schema.description ?? "")}${shapeOf(schema)}</article>`;
}

/** A schema in full: its members as a list, or the choices that there are. */
function shapeOf(schema: Schema): string {
  if (schema.properties) {
    const required = new Set(schema.required);
    const members = Object.entries(schema.properties).map(([name, member]) => {
      const mark = required.has(name) ? "" : "<small>optional</small> ";
      const inner =
        member.properties || member.items?.properties
          ? shapeOf(member.properties ? member : (member.items ?? {}))
          : "";
      return `<li><code>${text(name)}</code> ${mark}${typeOf(member)} ${prose(member.description ?? "")}${inner}</li>`;
    });
    return `<ul class="members">${members.join("")}</ul>`;
  }
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices?.some((choice) => choice.properties)) {
    return `<p>One of:</p><ol class="members">${choices
      .map((choice) => `<li>${choice.properties ? shapeOf(choice) : typeOf(choice)}</li>`)
      .join("")}</ol>`;
  }
  return `<p>${typeOf(schema)}</p>`;
}

/** A schema in a few words. */
function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) {
    const name = text(schema.$ref.split("/").at(-1) ?? "");
    return `<a href="#schema-${name}">${name}</a>`;
  }
  if (schema.const !== undefined) return `<code>${text(JSON.stringify(schema.const))}</code>`;
  if (schema.enum) return schema.enum.map((it) => `<code>${text(String(it))}</code>`).join(" | ");
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return choices.map(typeOf).join(" or ");
  if (schema.items) return `list of ${typeOf(schema.items)}`;
  if (typeof schema.additionalProperties === "object") {
    return `object of ${typeOf(schema.additionalProperties)}`;
  }
  const name = schema.type === undefined ? "any JSON" : [schema.type].flat().join(" or ");
  return `<i>${text(name)}</i>${limitsOf(schema)}`;
}

function limitsOf({ format, minimum, maximum, maxLength, maxItems }: Schema): string {
  const isWholeRange = maximum === Number.MAX_SAFE_INTEGER;
  const limits = [
    format,
    minimum !== undefined && minimum > Number.MIN_SAFE_INTEGER ? `from ${minimum}` : undefined,
    maximum !== undefined && !isWholeRange ? `to ${maximum}` : undefined,
    maxLength === undefined ? undefined : `at most ${maxLength} characters`,
    maxItems === undefined ? undefined : `at most ${maxItems} items`,
  ].filter((it) => it !== undefined);
  return limits.length > 0 ? ` <small>${text(limits.join(", "))}</small>` : "";
}

/** Text with its `code` marked up. */
function prose(value: string): string {
  return text(value).replaceAll(/`([^`]+)`/g, "<code>$1</code>");
}

function text(value: string): string {
  return value
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

const STYLE = `
:root{color-scheme:light dark;--line:light-dark(#d8dee4,#3d444d);--soft:light-dark(#f6f8fa,#151b23);--accent:light-dark(#0550ae,#79c0ff)}
*{box-sizing:border-box}
body{margin:0;display:grid;grid-template-columns:22rem minmax(0,1fr);font:15px/1.5 system-ui,sans-serif}
nav{position:sticky;top:0;height:100vh;overflow:auto;padding:1rem;border-right:1px solid var(--line);font-size:.9em}
nav ul{list-style:none;margin:0;padding:0}nav li{padding:.1rem 0}
main{padding:1rem 2rem;max-width:64rem}
h1{font-size:1.2rem;margin:.2rem 0 .8rem}h2{font-size:1rem;text-transform:capitalize;margin:1.4rem 0 .4rem}h3{margin:0 0 .4rem;font-size:1rem}h4{margin:.8rem 0 .2rem;font-size:.85rem}
input{width:100%;padding:.5rem;font:inherit;border:1px solid var(--line);border-radius:6px}
article{border:1px solid var(--line);border-radius:8px;padding:1rem;margin:0 0 1rem;scroll-margin-top:1rem}
article:target{outline:2px solid var(--accent)}
a{color:var(--accent);text-decoration:none}a:hover{text-decoration:underline}
code{background:var(--soft);padding:.05rem .3rem;border-radius:4px;font-size:.9em;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}td{border-top:1px solid var(--line);padding:.3rem .6rem .3rem 0;vertical-align:top}td:first-child{width:11rem}
.members{padding-left:1.2rem}
b.GET,b.HEAD{color:light-dark(#1a7f37,#56d364)}b.POST{color:light-dark(#0550ae,#79c0ff)}b.PUT,b.PATCH{color:light-dark(#9a6700,#e3b341)}b.DELETE{color:light-dark(#cf222e,#ff7b72)}
@media(max-width:50rem){body{display:block}nav{position:static;height:auto}}
`;

const SCRIPT = `
const search=document.getElementById("search"),none=document.getElementById("none");
const items=[...document.querySelectorAll("[data-search]")];
search.addEventListener("input",()=>{
  const words=search.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let shown=0;
  for(const item of items){
    const found=words.every((word)=>item.dataset.search.toLowerCase().includes(word));
    item.hidden=!found;
    if(found&&item.tagName==="ARTICLE")shown+=1;
  }
  none.hidden=shown>0;
});
`;

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${sha256(STYLE)}'`,
  `script-src 'sha256-${sha256(SCRIPT)}'`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

function sha256(value: string): string {
  return createHash("sha256").update(value).digest("base64");
}
