#!/usr/bin/env node
// Runs `modhost node` as a program of its own. Launchers of go-ipfs take the path of a program and
// add the commands themselves.
process.argv.splice(2, 0, "node");
import("../../../core/cli/launch.mjs");
