/** Installs a filter of system calls for this thread, and for the program that it becomes. */
import { assemble, type Instruction } from "../filter/bpf.ts";
import { type FilterOptions, filterOf } from "../filter/filter.ts";
import type { Libc } from "./libc.ts";
import { calls } from "./numbers.ts";

const PR_SET_SECCOMP = 22;
const SECCOMP_MODE_FILTER = 2;
const PR_SET_NO_NEW_PRIVS = 38;

/** From now on no program can give this process rights that it does not have. */
export function refusePrivileges(libc: Libc): void {
  libc.call("prctl(PR_SET_NO_NEW_PRIVS)", calls.prctl, PR_SET_NO_NEW_PRIVS, 1);
}

export function restrictCalls(libc: Libc, options: FilterOptions): void {
  installFilter(libc, filterOf(options));
}

export function installFilter(libc: Libc, program: readonly Instruction[]): void {
  const header = Buffer.alloc(16);
  header.writeUInt16LE(program.length, 0);
  header.writeBigUInt64LE(libc.address(assemble(program)), 8);
  libc.call("prctl(PR_SET_SECCOMP)", calls.prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, libc.address(header));
}
