/** The help text of the benchmarks. */
import { scaleHelp } from "./scale/help.ts";

const HELP = `npm run bench -- [NAME...] [OPTIONS]       all of them without a name

  host       requests, files, TLS, websockets and the start, compared with other servers
  metrics    the cost of metrics per request
  isolated   the same routes in sandboxed, isolated and trusted modules
  workers    a server with one process and with two
  node       adds, reads and small calls, compared with other nodes and with the limit of the machine
  mount      the mounts of a node, compared with the same work over RPC
  network    blocks from one process to another
  sources    a file from peers and gateways over slow lines
  provide    blocks announced to a simulated DHT
  gateway    files, ranges, pages and archives
  scale      several hosts on one store: scale --help

  --rounds N   --size MIB   --requests N   --blocks N   --peers N   --delay MS   --full   --only EXPRESSION
             see docs/benchmarks/ for the options of each benchmark
  --save     writes the tables into docs/benchmarks/, unless some of their rows were left out
`;

/** Returns the help of one benchmark if it has its own. */
export const helpOf = (names: readonly string[]): string =>
  names.length === 1 && names[0] === "scale" ? scaleHelp : HELP;
