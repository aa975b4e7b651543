/** `modhost node init`: creates a repo. */
import { type Command, UsageError } from "../../../../core/cli/index.ts";
import { textOf } from "./repo.ts";

export const init: Command = {
  name: "init",
  arguments: "[DEFAULT-CONFIG]",
  help: "Create a repo, with a new key or the identity in a config file",
  options: {
    profile: { type: "string", short: "p", value: "NAMES", help: "Profiles to apply, separated by commas" },
    algorithm: { type: "string", short: "a", value: "NAME", help: "Type of the key: ed25519 (the default) or rsa" },
    bits: { type: "string", short: "b", value: "N", help: "Size of an RSA key in bits; default: 2048" },
    "empty-repo": { type: "boolean", short: "e", help: "No effect: welcome documents are never added" },
  },
  async run(context) {
    const { args, options } = context;
    if (args.length > 1) throw new UsageError(`expected 1 argument(s), got ${args.length}`);
    const { makeRepo } = await import("./make_repo.ts");
    await makeRepo(context, {
      document: args[0],
      profile: textOf(options.profile),
      algorithm: textOf(options.algorithm),
      bits: textOf(options.bits),
    });
    return 0;
  },
};
