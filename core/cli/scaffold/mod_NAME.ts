import { defineModule, text } from "modhost";

/** Serves /APP/ and /APP/greet/<somebody>. */
export default defineModule({
  // The options of this module: they are checked before anything is loaded.
  options: {
    NAME_greeting: { type: "string", default: "Hello", describe: "The greeting for visitors." },
  },
  // These modules are loaded before this one.
  depends: ["http"],
  // Runs at every load. Everything that it adds through `module` is removed automatically at the
  // unload.
  load(module) {
    const greeting = module.get_option_string("NAME_greeting");
    module.provides("http", {
      route: {
        // The return value is the response: text(...), json(...), html`...`, a status such as 404,
        // bytes, a stream, or a promise of these. A plain string would be sent without a content
        // type.
        "GET /": () => text(`${greeting}, world!\n`),
        // This matches every path below; the second argument is the part that the star matches.
        "GET /greet/*": (_event, somebody) => text(`${greeting}, ${somebody}!\n`),
      },
    });
  },
});
