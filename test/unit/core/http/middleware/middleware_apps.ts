/** Apps for the tests of middleware before apps. */

export const long = "a line of text that can be packed well\n".repeat(2000);

/** A module, as a file. */
export const hello = `export default (module) => {
  module.depends("http");
  module.provides("http", {
    route: {
      "GET /": (event) => { event.response.headers.content_type = "text/plain"; return "hello"; },
      "GET /limited": () => "one of few",
      "GET /long": (event) => {
        event.response.headers.content_type = "text/plain";
        event.response.headers.etag = '"plain"';
        return ${JSON.stringify(long.slice(0, 78))}.repeat(1000);
      },
      "GET /broken": () => { throw new Error("broken on purpose"); },
    },
  });
};`;
