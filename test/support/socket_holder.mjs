// Holds the listening socket that it is given as descriptor 3, without accepting from it, and runs
// a program with it, as systemd does for a .socket unit. The words on its command line are the
// program's; the message "restart" ends it by SIGTERM and starts it again. Its output is passed on.
import { spawn } from "node:child_process";
import { once } from "node:events";

const [name, ...words] = process.argv.slice(2);
const start = () =>
  spawn(process.execPath, words, {
    stdio: ["ignore", "inherit", "inherit", 3, "ipc"],
    // The program takes its parent for its launcher, which has the descriptors.
    env: {
      ...process.env,
      LISTEN_PID: String(process.pid),
      LISTEN_FDS: "1",
      LISTEN_FDNAMES: name,
      MODHOST_LAUNCHED: "1",
    },
  });

let child = start();
process.on("message", async (message) => {
  child.kill("SIGTERM");
  const [code] = await once(child, "exit");
  if (message === "restart") child = start();
  process.send({ code });
});
process.on("disconnect", () => {
  child.kill("SIGKILL");
  process.exit();
});
