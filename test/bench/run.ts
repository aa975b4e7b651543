import { parseArgs } from "node:util";
import { benchGateway } from "./gateway.ts";
import { helpOf } from "./help.ts";
import { benchHost, benchIsolated } from "./host.ts";
import { benchMetrics } from "./metrics.ts";
import { benchMount } from "./mount.ts";
import { benchNetwork } from "./network.ts";
import { benchNode } from "./node.ts";
import { benchProvide } from "./provide.ts";
import { BenchReport } from "./report.ts";
import { benchScale } from "./scale.ts";
import { benchSources } from "./sources.ts";
import { benchWorkers } from "./workers.ts";

interface Options {
  rounds?: number;
  requests?: number;
  size?: number;
  blocks?: number;
  peers?: number;
  hosts?: number;
  line?: number;
  delay?: number;
  full?: boolean;
  only?: string;
}

const benches: Record<string, (options: Options, report: BenchReport) => Promise<void>> = {
  host: benchHost,
  metrics: benchMetrics,
  isolated: benchIsolated,
  node: benchNode,
  mount: benchMount,
  network: benchNetwork,
  provide: benchProvide,
  sources: benchSources,
  gateway: benchGateway,
  workers: benchWorkers,
  scale: benchScale,
};

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string" },
    requests: { type: "string" },
    size: { type: "string" },
    blocks: { type: "string" },
    peers: { type: "string" },
    hosts: { type: "string" },
    line: { type: "string" },
    delay: { type: "string" },
    full: { type: "boolean" },
    save: { type: "boolean" },
    only: { type: "string" },
    help: { type: "boolean", short: "h" },
  },
});
const { full, only, help, save, ...numbers } = values;
if (help === true) {
  process.stdout.write(helpOf(positionals));
  process.exit();
}
const options: Options = {
  ...Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, Number(value)])),
  ...(full === undefined ? {} : { full }),
  ...(only === undefined ? {} : { only }),
};
const chosen = positionals.length > 0 ? positionals : Object.keys(benches);
for (const name of chosen) {
  const report = new BenchReport();
  const bench = benches[name];
  if (bench === undefined) {
    console.error(`There is no benchmark ${name}: choose among ${Object.keys(benches).join(", ")}`);
    process.exit(2);
  }
  await bench(options, report);
  if (save === true) report.save();
}
