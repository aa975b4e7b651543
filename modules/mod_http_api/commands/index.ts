/** The table of all commands, group by group. */
import type { Commands } from "../rpc/command.ts";
import { Table } from "../rpc/table.ts";
import { commands as add, kubo043 as addToday } from "./add.ts";
import { commands as bitswap, kubo043 as bitswapToday } from "./bitswap.ts";
import { commands as block, kubo043 as blockToday } from "./block.ts";
import { commands as bootstrap, kubo043 as bootstrapToday } from "./bootstrap.ts";
import { commands as cat } from "./cat.ts";
import { commands as cid, kubo043 as cidToday } from "./cid.ts";
import { commands as listed } from "./commands.ts";
import { commands as config } from "./config.ts";
import { commands as dag } from "./dag.ts";
import { kubo043 as dagToday } from "./dag_kubo_0_43.ts";
import { commands as dht } from "./dht.ts";
import { commands as diag } from "./diag.ts";
import { commands as dns } from "./dns.ts";
import { commands as file } from "./file.ts";
import { commands as files } from "./files.ts";
import { kubo043 as filesToday } from "./files_kubo_0_43.ts";
import { commands as filesStat, kubo043 as filesStatToday } from "./files_stat.ts";
import { commands as filestore, kubo043 as filestoreToday } from "./filestore.ts";
import { commands as get } from "./get.ts";
import { commands as id, kubo043 as idToday } from "./id.ts";
import { commands as key } from "./key.ts";
import { commands as log, kubo043 as logToday } from "./log.ts";
import { commands as ls, kubo043 as lsToday } from "./ls.ts";
import { commands as mount } from "./mount.ts";
import { commands as multibase } from "./multibase.ts";
import { commands as name, kubo043 as nameToday } from "./name.ts";
import { commands as object, kubo043 as objectToday } from "./object.ts";
import { commands as p2p, kubo043 as p2pToday } from "./p2p.ts";
import { commands as pin, kubo043 as pinToday } from "./pin.ts";
import { commands as ping } from "./ping.ts";
import { commands as provide, kubo043 as provideToday } from "./provide.ts";
import { commandsIn, multibase as encoded, plain } from "./pubsub.ts";
import { commands as refs } from "./refs.ts";
import { commands as repo, kubo043 as repoToday } from "./repo.ts";
import { commands as resolve } from "./resolve.ts";
import { commands as routing } from "./routing.ts";
import { commands as shutdown } from "./shutdown.ts";
import { commands as stats } from "./stats.ts";
import { commands as swarm, kubo043 as swarmToday } from "./swarm.ts";
import { commands as kept } from "./swarm_kubo_0_43.ts";
import { commands as tar } from "./tar.ts";
import { commands as update } from "./update.ts";
import { commands as urlstore } from "./urlstore.ts";
import { commands as version } from "./version.ts";

const others = [
  repo,
  shutdown,
  log,
  id,
  diag,
  config,
  add,
  block,
  cid,
  ls,
  pin,
  cat,
  file,
  get,
  refs,
  resolve,
  listed,
  version,
  bitswap,
  bootstrap,
  dag,
  dht,
  files,
  filesStat,
  filestore,
  key,
  dns,
  multibase,
  name,
  object,
  p2p,
  ping,
  provide,
  routing,
  stats,
  swarm,
  kept,
  mount,
  update,
  tar,
  urlstore,
];

/** Commands that Kubo 0.43 declares differently. */
const kubo043 = [
  objectToday,
  repoToday,
  addToday,
  bitswapToday,
  blockToday,
  bootstrapToday,
  cidToday,
  dagToday,
  filesStatToday,
  filesToday,
  filestoreToday,
  idToday,
  logToday,
  lsToday,
  nameToday,
  p2pToday,
  pinToday,
  provideToday,
  swarmToday,
  commandsIn(encoded),
];

export const table = new Table([...others, commandsIn(plain)], { kubo043 });

/** Returns the pubsub commands with topics and messages in one encoding, at every level. */
export const pubsubIn = (wire: "plain" | "multibase"): Commands => commandsIn(wire === "plain" ? plain : encoded);
