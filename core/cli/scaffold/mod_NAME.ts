import { defineModule, text } from "modhost";

/** Serves /APP/ and /APP/greet/<somebody>. */
export default defineModule({
  // What the configuration may say: checked before anything is loaded.
  options: {
    NAME_greeting: { type: "string", default: "Hello", describe: "What visitors are greeted with." },
  },
  // Loaded before this module.
  depends: ["http"],
  // Runs at every load. What it adds through `module` goes with it at the unload, without further help.
  load(module) {
    const greeting = module.get_option_string("NAME_greeting");
    module.provides("http", {
      route: {
        // What a handler returns is the answer: text(...), json(...), html`...`, a status such as 404, bytes, a stream,
        // or a promise of these. A plain string would be sent without a content type.
        "GET /": () => text(`${greeting}, world!\n`),
        // This path and everything below it; what the star stands for is the second argument.
        "GET /greet/*": (_event, somebody) => text(`${greeting}, ${somebody}!\n`),
      },
    });
  },
});
