import { program } from "./program.ts";

const { stdout, stderr, env } = process;
process.exit(await program(process.argv.slice(2), { stdout, stderr, env, cwd: process.cwd() }));
