import { program } from "./program.ts";

const { stdin, stdout, stderr, env } = process;
process.exit(await program(process.argv.slice(2), { stdin, stdout, stderr, env, cwd: process.cwd() }));
