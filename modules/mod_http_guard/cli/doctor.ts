/** Checks of `modhost doctor` for files of users. */
import { type Check, openToOthers } from "../../../core/cli/index.ts";

export const checks: readonly Check[] = [
  {
    name: "passwords",
    help: "Only the server can read http_guard_users_file with its password hashes",
    run({ config }) {
      const files = [undefined, ...(config?.hosts() ?? [])].map((host) => config?.value("http_guard_users_file", host));
      return [...new Set(files)].flatMap((file) => openToOthers(file));
    },
  },
];
