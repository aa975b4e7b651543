/** Starts a host with the configuration in the first argument, and prints its port. */
import { createHost } from "#core/host.ts";

const host = createHost({ config: JSON.parse(process.argv[2] as string), log: { level: "error" } });
await host.start();
console.log(host.listening()[0]?.port);
