/**
 * A chat over websockets: open http://localhost:5280/chat/ in two windows. The end of the socket's
 * address is the name of the room: `/chat/?room=kitchen` is another one.
 *
 * A message is a line of JSON: `{ name, text }`. Newcomers get the last messages, even after a
 * reload.
 */
import type { Module, WebSocketConnection, WebSocketEvent } from "modhost";
import { formdecode } from "modhost/net/http";

export const options = {
  chat_history: { type: "integer", default: 50, min: 0, describe: "Number of messages that each room remembers." },
  chat_rooms: {
    type: "integer",
    default: 100,
    min: 1,
    describe: "Maximum number of open rooms, and of empty rooms that are remembered.",
  },
} as const;

interface Room {
  readonly members: Set<WebSocketConnection>;
  readonly lines: string[];
}

export default function chat(module: Module<typeof options>) {
  module.depends("http");
  const maxLines = module.get_option_integer("chat_history");
  const limit = module.get_option_integer("chat_rooms");
  // During a reload the old and the new instance share this table. It contains only lines: sockets
  // belong to their instance, which closes them with 1012, and their pages connect to the new one.
  const history = module.shared("history") as Record<string, string[]>;
  const rooms = new Map<string, Room>();

  function enter(name: string, socket: WebSocketConnection): Room {
    const room = rooms.get(name) ?? { members: new Set(), lines: (history[name] ??= []) };
    rooms.set(name, room);
    room.members.add(socket);
    return room;
  }

  function leave(name: string, room: Room, socket: WebSocketConnection): void {
    room.members.delete(socket);
    if (room.members.size > 0) return;
    rooms.delete(name);
    // Limits the number of remembered empty rooms, because anybody can invent names.
    for (const oldest of Object.keys(history).slice(0, -limit)) if (!rooms.has(oldest)) delete history[oldest];
    module.log.debug("The room %s is empty", name);
  }

  /**
   * The module does not wait for slow members: the host disconnects a client that does not read.
   */
  function say(room: Room, name: string, text: string): void {
    const line = JSON.stringify({ name, text });
    room.lines.push(line);
    room.lines.splice(0, room.lines.length - maxLines);
    for (const member of room.members) member.send(line);
  }

  module.provides("http", {
    websocket: { max_message_bytes: 4096 },
    route: {
      "GET /": (event) => {
        event.response.headers.content_type = "text/html; charset=utf-8";
        return page;
      },

      // Until `accept` this is an ordinary request, and a number rejects it.
      "WS /room/*": async (event, name) => {
        if (!/^[\w-]{1,40}$/.test(name)) return 404;
        if (!rooms.has(name) && rooms.size >= limit) return 503;
        const who = nameOf(event);
        const socket = event.accept();
        const room = enter(name, socket);
        try {
          for (const line of room.lines) socket.send(line);
          for await (const message of socket) {
            if (typeof message !== "string") return void socket.close(1003, "Text only");
            if (message.trim() !== "") say(room, who, message.trim());
          }
        } finally {
          leave(name, room, socket);
        }
      },
    },
  });
}

function nameOf(event: WebSocketEvent): string {
  const query = formdecode(event.request.url.query ?? "");
  const name = typeof query === "string" ? "" : (query.name ?? "").trim();
  return name.slice(0, 40) || "somebody";
}

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Chat</title>
<h1>Chat</h1>
<ul id="lines"></ul>
<form><input name="text" autocomplete="off" autofocus required maxlength="1000"> <button>Say</button></form>
<script type="module">
  const query = new URLSearchParams(location.search);
  const url = new URL("room/" + (query.get("room") ?? "lobby"), location.href);
  url.protocol = url.protocol.replace("http", "ws");
  url.searchParams.set("name", query.get("name") ?? prompt("Your name?") ?? "");
  const lines = document.querySelector("#lines");
  let socket;

  function connect() {
    socket = new WebSocket(url);
    socket.onopen = () => lines.replaceChildren();
    socket.onmessage = ({ data }) => {
      const { name, text } = JSON.parse(data);
      const item = document.createElement("li");
      // As text: what others write is not HTML.
      item.textContent = name + ": " + text;
      lines.append(item);
    };
    // The server was restarted, or the module reloaded.
    socket.onclose = () => setTimeout(connect, 1000);
  }
  connect();

  document.querySelector("form").onsubmit = (event) => {
    event.preventDefault();
    socket.send(event.target.text.value);
    event.target.reset();
  };
</script>
</html>
`;
