import { defineModule } from "modhost";

/** Serves /APP/ and /APP/greet/<somebody>. */
export default defineModule({
  options: {
    NAME_greeting: { type: "string", default: "Hello", describe: "What visitors are greeted with." },
  },
  depends: ["http"],
  load(module) {
    const greeting = module.get_option_string("NAME_greeting");
    module.provides("http", {
      route: {
        "GET /": () => `${greeting}, world!\n`,
        "GET /greet/*": (_event, somebody) => `${greeting}, ${somebody}!\n`,
      },
    });
  },
});
