import { parseArgs } from "node:util";
import { benchHost } from "./host.ts";

const benches: Record<string, (options: { rounds?: number; requests?: number }) => Promise<void>> = { host: benchHost };

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string" }, requests: { type: "string" } },
});
const chosen = positionals.length > 0 ? positionals : Object.keys(benches);
for (const name of chosen) {
  const bench = benches[name];
  if (bench === undefined) {
    console.error(`There is no benchmark ${name}: choose among ${Object.keys(benches).join(", ")}`);
    process.exit(2);
  }
  await bench({
    ...(values.rounds === undefined ? {} : { rounds: Number(values.rounds) }),
    ...(values.requests === undefined ? {} : { requests: Number(values.requests) }),
  });
}
