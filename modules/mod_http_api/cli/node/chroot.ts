/** `modhost node files chroot`. */
import { type Command, counted, UsageError } from "../../../../core/cli/index.ts";
import { dataFolder, repoFolder } from "./repo.ts";

export const chroot: Command = {
  name: "files chroot",
  arguments: "[CID]",
  help: "Give the files of a repo another root, an empty directory by default; no node may have the repo open",
  options: {
    confirm: { type: "boolean", help: "Do it: what only the old root refers to is removed by the next collection" },
  },
  async run(context) {
    const { args, options, stdout, stderr } = context;
    const [root, ...more] = args;
    if (more.length > 0) throw new UsageError(`expected 1 argument(s), got ${args.length}`);
    if (options.confirm !== true) {
      throw new UsageError(
        "files chroot replaces the root of the files, and the next collection removes what only the old one refers to: add --confirm",
      );
    }
    const { replaceFilesRoot } = await import("modhost/node");
    const { before, after, dropped } = await replaceFilesRoot(repoFolder(context), {
      root,
      data: dataFolder(context),
      onNotice: (sentence) => stderr.write(`${sentence}\n`),
    });
    stdout.write(`The root of the files was ${before ?? "empty"} and is ${after} now.\n`);
    if (dropped > 0)
      stdout.write(
        `${counted(dropped, "change")} since the old root was stored ${dropped === 1 ? "is" : "are"} gone.\n`,
      );
    if (before !== undefined) {
      stdout.write(
        `Nothing was removed: to go back, \`files chroot --confirm ${before}\` before garbage is collected.\n`,
      );
    }
    return 0;
  },
};
