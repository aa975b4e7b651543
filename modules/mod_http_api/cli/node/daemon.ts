/** `modhost node daemon`: output, files, signals and exit codes are those that launchers of go-ipfs expect. */
import { rmSync } from "node:fs";
import { type Command, outliveReaders, serve } from "../../../../core/cli/index.ts";
import { apiFiles, repoFolder } from "./repo.ts";

export const daemon: Command = {
  name: "daemon",
  help: "Serve the repo at the addresses of its own config, and nothing else, in the place of go-ipfs",
  options: {
    init: { type: "boolean", help: "Make the repo when there is none" },
    "init-config": { type: "string", value: "FILE", help: "Config file that --init begins with" },
    "init-profile": { type: "string", value: "NAMES", help: "Profiles that --init applies, separated by commas" },
    offline: { type: "boolean", help: "Stay without a network" },
    routing: { type: "string", value: "KIND", help: "Over Routing.Type: dht, dhtclient, dhtserver, none or default" },
    "enable-pubsub-experiment": { type: "boolean", help: "Switch on publish and subscribe" },
    "enable-namesys-pubsub": { type: "boolean", help: "Names over publish and subscribe, too; switches both on" },
    "enable-gc": { type: "boolean", help: "Collect garbage by itself when the repo is nearly full" },
    migrate: { type: "boolean", help: "Taken; a repo of an older format is refused all the same" },
    mount: { type: "boolean", help: "Mount contents and names as folders (Linux, as root)" },
    "mount-ipfs": { type: "string", value: "DIR", help: "Folder for contents; default: Mounts.IPFS of the config" },
    "mount-ipns": { type: "string", value: "DIR", help: "Folder for names; default: Mounts.IPNS of the config" },
    "disable-transport-encryption": { type: "boolean", help: "Refused" },
    writable: { type: "boolean", help: "Of no effect: the gateway is read-only" },
    "unrestricted-api": { type: "boolean", help: "Of no effect" },
    "manage-fdlimit": { type: "boolean", help: "Of no effect: the limit of open files is raised in any case" },
    "enable-mplex-experiment": { type: "boolean", help: "Of no effect: see Swarm.Transports of the config" },
  },
  async run(context) {
    const { stdout } = context;
    // A launcher may close the pipe once it has read enough.
    outliveReaders(stdout, context.stderr);
    // Loaded here alone: other commands of the program do not pay for the library.
    const { versionFacts } = await import("modhost/node");
    const { version, repo, system, golang } = versionFacts();
    stdout.write(
      `Initializing daemon...\ngo-ipfs version: ${version}\nRepo version: ${repo}\n` +
        `System version: ${system}\nGolang version: ${golang}\n`,
    );
    const { Daemon } = await import("./service.ts");
    return serve(new Daemon(context), {
      interrupted: () =>
        stdout.write(
          "\nReceived interrupt signal, shutting down...\n(Hit ctrl-c again to force-shutdown the daemon.)\n",
        ),
      forced() {
        stdout.write("Received another interrupt before graceful shutdown, terminating...\n");
        for (const file of apiFiles(repoFolder(context))) rmSync(file, { force: true });
        return 255;
      },
    });
  },
};
