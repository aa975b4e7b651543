#!/usr/bin/env node
// `modhost node` as a program of its own, for launchers that are told the path of one and know its commands.
process.argv.splice(2, 0, "node");
import("./launch.mjs");
