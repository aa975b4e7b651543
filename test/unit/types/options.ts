/**
 * Checked by the compiler only: the types that the getters of declared options return, and the
 * calls that they refuse.
 */
import { createHost, defineModule, type Module, type OptionDeclarations } from "modhost";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : never;
const same = <A, B>(_same: Same<A, B>): void => undefined;

const declared = defineModule({
  options: {
    limit: { type: "integer", default: 10, describe: "…" },
    ratio: { type: "number", describe: "…" },
    mode: { type: "enum", values: ["a", "b"], describe: "…" },
    style: { type: "enum", values: ["plain", "rich"], default: "plain", describe: "…" },
    wait: { type: "period", default: "90s", describe: "…" },
    open: { type: "boolean", default: false, describe: "…" },
    title: { type: "string", describe: "…" },
    names: { type: "strings", default: [], describe: "…" },
    doors: { type: "ports", describe: "…" },
    folder: { type: "path", default: "./www", describe: "…" },
    table: { type: "object", describe: "…" },
    keys: {
      type: "object",
      describe: "…",
      entries: { key: { type: "path", describe: "…" }, strict: { type: "boolean", default: true, describe: "…" } },
    },
    other: { type: "any", describe: "…" },
  },
  load(module) {
    // An option has its declared type, and may be undefined only if it has no default.
    const read = {
      limit: module.get_option("limit"),
      ratio: module.get_option("ratio"),
      mode: module.get_option("mode"),
      style: module.get_option("style"),
      wait: module.get_option("wait"),
      open: module.get_option("open"),
      title: module.get_option("title"),
      names: module.get_option("names"),
      doors: module.get_option("doors"),
      folder: module.get_option("folder"),
      table: module.get_option("table"),
      keys: module.get_option("keys"),
      other: module.get_option("other"),
    };
    same<typeof read.limit, number>(true);
    same<typeof read.ratio, number | undefined>(true);
    same<typeof read.mode, "a" | "b" | undefined>(true);
    same<typeof read.style, "plain" | "rich">(true);
    same<typeof read.wait, number>(true);
    same<typeof read.open, boolean>(true);
    same<typeof read.title, string | undefined>(true);
    same<typeof read.names, readonly string[]>(true);
    same<typeof read.doors, readonly number[] | undefined>(true);
    same<typeof read.folder, string>(true);
    same<typeof read.table, Readonly<Record<string, unknown>> | undefined>(true);
    same<NonNullable<typeof read.keys>[string], { readonly key: string; readonly strict: boolean }>(true);
    same<typeof read.other, unknown>(true);

    // The getter for the type of an option returns the same type as its declaration.
    const limit = module.get_option_integer("limit");
    const wait = module.get_option_period("wait");
    const title = module.get_option_string("title");
    const style = module.get_option_string("style");
    const names = module.get_option_set("names");
    const mode = module.get_option_enum("mode", ["a", "b"]);
    same<typeof limit, number>(true);
    same<typeof wait, number>(true);
    same<typeof title, string | undefined>(true);
    same<typeof style, string>(true);
    same<typeof names, Set<string>>(true);
    same<typeof mode, "a" | "b" | undefined>(true);
    module.get_option_object("other");

    // @ts-expect-error: declared as an integer
    module.get_option_string("limit");
    // @ts-expect-error: declared as text
    module.get_option_integer("title");
    // @ts-expect-error: declared as an enum
    module.get_option_boolean("mode");
    // @ts-expect-error: a list
    module.get_option_path("names");
    // @ts-expect-error: no such option
    module.get_option("limits");
    // @ts-expect-error: no such option
    module.get_option_string("limits");

    // The rest of the module object exists, and it is assignable to any module object.
    module.provides("http", { route: { "GET /*": (_event, path) => path.length } });
    helper(module);
  },
});

/** Reads any option by any getter. */
function helper(module: Module): void {
  const text = module.get_option_string("anything", "else");
  const some = module.get_option<number>("limit");
  const raw = module.get_option("limit");
  same<typeof text, string | undefined>(true);
  same<typeof some, number | undefined>(true);
  same<typeof raw, unknown>(true);
}

/** A default function next to its options, as in a module file. */
const options = { limit: { type: "integer", default: 1, describe: "…" } } as const satisfies OptionDeclarations;
function load(module: Module<typeof options>): void {
  const limit = module.get_option("limit");
  same<typeof limit, number>(true);
  // @ts-expect-error: no such option
  module.get_option_integer("size");
  helper(module);
}

/** Without declarations, every option has the type unknown, and no name is refused. */
const open = defineModule({ load: (module) => helper(module) });

createHost({
  modules: [
    { name: "declared", ...declared },
    { name: "loaded", load, options },
    { name: "open", ...open },
  ],
});
// @ts-expect-error: its options would stay undeclared
createHost({ modules: [load] });
// @ts-expect-error: no type of options
defineModule({ options: { limit: { type: "int", describe: "…" } }, load: () => undefined });
