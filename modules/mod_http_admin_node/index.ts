/**
 * The node in the Admin API: operations that inspect and change its state, pins, keys, files and
 * blocks.
 */
import type { NodeModule } from "modhost/node";
import type { Module } from "../../core/types.ts";
import { Directories } from "./directories.ts";
import { History, type SavedHistory } from "./history.ts";
import { Jobs } from "./jobs.ts";
import { operations } from "./operations/index.ts";
import { bound, type Deps } from "./operations/operation.ts";
import { PinList } from "./pin_list.ts";
import { shapes } from "./shapes.ts";
import { UploadRecords } from "./upload_records.ts";

/**
 * `http_admin` is not listed: when it is disabled, nobody uses what this module provides, and that
 * is not a failure.
 */
export const depends = ["node"];
/** There is one node per process, shared by all virtual hosts. */
export const global = true;
export const shared = true;

export default function load(module: Module): void {
  const node = module.depends<NodeModule>("node");
  const jobs = new Jobs();
  const history = new History(node);
  const uploads = new UploadRecords();
  const lists = { pins: new PinList(node), directories: new Directories(node) };
  const deps: Deps = { node, jobs, history, uploads, ...lists };
  module.provides("admin", {
    operations: operations.map((operation) => bound(operation, deps)),
    topics: { node_figures: history.topic, node_jobs: jobs.topic },
    shapes,
    pages: { folder: new URL("pages/", import.meta.url), script: "main.js", styles: ["style.css"] },
  });
  module.ready = () => {
    if (module.serves()) history.start();
  };
  module.save = () => history.save();
  module.restore = (saved) => history.restore(saved as SavedHistory);
  module.unload = async () => {
    history.stop();
    uploads.close();
    await jobs.close();
  };
}
