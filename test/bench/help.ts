/** What the command of the benchmarks tells of itself. */
import { scaleHelp } from "./scale/help.ts";

const HELP = `npm run bench -- [NAME...] [OPTIONS]       all of them without a name

  host       requests, files, TLS, websockets and the start beside other servers
  figures    what figures cost a request
  isolated   what a worker of its own costs a module
  workers    a server of one process and of two
  node       adds, reads and small calls beside other nodes and the limit of the machine
  mount      the mounts of a node beside the same over RPC
  network    blocks from one process to another
  sources    a file from peers and gateways over slow lines
  provide    blocks announced to a simulated DHT
  gateway    files, ranges, pages and archives
  scale      several hosts on one store: scale --help

  --rounds N   --size MIB   --requests N   --blocks N   --peers N   --delay MS   --full   --only EXPRESSION
             where a benchmark has them: docs/benchmarks/
  --save     writes the tables into docs/benchmarks/, except those of which some was left out
`;

/** For one benchmark where it has parts of its own. */
export const helpOf = (names: readonly string[]): string =>
  names.length === 1 && names[0] === "scale" ? scaleHelp : HELP;
