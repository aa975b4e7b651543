import { jsonOf } from "./json_by_hand.ts";
import { listen } from "./listen.ts";

const type = process.env.BENCH_APP === "json" ? "application/json; charset=utf-8" : "text/plain; charset=utf-8";

listen(async (request, response) => {
  const body = process.env.BENCH_APP === "json" ? JSON.stringify(await jsonOf(request)) : "hello";
  response.writeHead(process.env.BENCH_APP === "nothing" ? 404 : 200, {
    "Content-Type": type,
    "Content-Length": Buffer.byteLength(body),
  });
  response.end(body);
});
