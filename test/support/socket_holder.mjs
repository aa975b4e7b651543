// Passes a listening socket to a program, as systemd does for a .socket unit. It gets the socket as
// descriptor 3 and does not accept from it. Its arguments are the command line of the program. The
// message "restart" ends the program with SIGTERM and starts it again. The program's output is
// passed on.
import { spawn } from "node:child_process";
import { once } from "node:events";

const [name, ...words] = process.argv.slice(2);
const start = () =>
  spawn(process.execPath, words, {
    stdio: ["ignore", "inherit", "inherit", 3, "ipc"],
    // The program assumes that its parent is its launcher, which has the descriptors.
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
