// Serves what a takeover must not lose: a count that the next process continues, uploads,
// downloads, and a long request.
export default (module) => {
  module.depends("http");
  /* begin */
  let count = 0;
  let letGo;
  const released = new Promise((resolve) => {
    letGo = resolve;
  });
  module.save = () => ({ count });
  module.restore = (saved) => {
    count = saved.count;
  };
  const headers = { content_type: "text/plain; charset=utf-8" };
  const response = (body) => ({ headers, body: String(body) });
  module.provides("http", {
    streaming_uploads: true,
    route: {
      "GET /pid": () => response(process.pid),
      "GET /count": () => {
        count += 1;
        return response(count);
      },
      "GET /held": () => released.then(response),
      "GET /let_go": () => {
        letGo("at last");
        return response("");
      },
      "GET /download": ({ request, response }) => {
        const [pieces, pause] = (request.url.query ?? "1,0").split(",").map(Number);
        response.headers = headers;
        return (async function* () {
          for (let at = 0; at < pieces; at += 1) {
            yield "piece\n";
            await new Promise((resolve) => setTimeout(resolve, pause));
          }
        })();
      },
      "POST /upload": async ({ request }) => {
        let bytes = 0;
        for await (const piece of request.body_stream) bytes += piece.length;
        return response(bytes);
      },
    },
  });
};
