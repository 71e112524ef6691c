import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** The least that an HTTP API does: parse a JSON body and answer JSON. */
const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk: string) => {
    body += chunk;
  });
  request.on("end", () => {
    const answer = JSON.stringify({ id: "instance", ...(JSON.parse(body) as object) });
    const headers = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(answer),
    };
    response.writeHead(201, headers).end(answer);
  });
});
server.listen(0, "127.0.0.1", () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.on("disconnect", () => process.exit(0));
