// Serves what a takeover must not lose: a count that is carried on, uploads, downloads, and a
// request that lasts.
export default (module) => {
  module.depends("http");
  /* begin */
  let count = 0;
  let letGo;
  const held = new Promise((resolve) => {
    letGo = resolve;
  });
  module.save = () => ({ count });
  module.restore = (saved) => {
    count = saved.count;
  };
  const headers = { content_type: "text/plain; charset=utf-8" };
  const answer = (body) => ({ headers, body: String(body) });
  module.provides("http", {
    streaming_uploads: true,
    route: {
      "GET /pid": () => answer(process.pid),
      "GET /count": () => {
        count += 1;
        return answer(count);
      },
      "GET /held": () => held.then(answer),
      "GET /let_go": () => {
        letGo("at last");
        return answer("");
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
        return answer(bytes);
      },
    },
  });
};
