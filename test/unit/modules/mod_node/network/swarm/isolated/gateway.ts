/**
 * A gateway between a home network and the outside, which opens its ports for inside hosts that
 * request it by UPnP.
 */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { connect, createServer } from "node:net";

const device = "urn:schemas-upnp-org:device:InternetGatewayDevice:2";
const service = "urn:schemas-upnp-org:service:WANIPConnection:2";
const discovery = { group: "239.255.255.250", port: 1900 };

export interface Gateway extends AsyncDisposable {
  /** Requested actions in order, each with the inner port if it names one. */
  readonly requests: readonly string[];
  /** Resolves to the outer port when one has been opened. */
  readonly opened: Promise<number>;
}

/** `inside` is its address in the home network, `outside` the one that others see. */
export async function startGateway(inside: string, outside: string): Promise<Gateway> {
  const requests: string[] = [];
  const { promise: opened, resolve } = Promise.withResolvers<number>();
  const doors: { close(): unknown }[] = [];

  const open = async (host: string, port: number): Promise<number> => {
    const socket = createServer((from) => {
      const to = connect(port, host);
      from.pipe(to).pipe(from);
      for (const [end, other] of [
        [from, to],
        [to, from],
      ] as const)
        end.on("error", () => other.destroy());
    }).listen(0, outside);
    doors.push(socket);
    await once(socket, "listening");
    return (socket.address() as { port: number }).port;
  };

  const act = async (action: string, body: string): Promise<string> => {
    const field = (name: string) => new RegExp(`<${name}>(.*?)</${name}>`).exec(body)?.[1] ?? "";
    const port = field("NewInternalPort");
    requests.push(`${action} ${port}`.trim());
    if (action === "GetExternalIPAddress") return `<NewExternalIPAddress>${outside}</NewExternalIPAddress>`;
    if (action !== "AddAnyPortMapping") return "";
    const outer = await open(field("NewInternalClient"), Number(port));
    resolve(outer);
    return `<NewReservedPort>${outer}</NewReservedPort>`;
  };

  const web = createHttpServer(async (request, response) => {
    const body = (await request.toArray()).join("");
    const action = /#(\w+)/.exec(String(request.headers.soapaction))?.[1];
    response.setHeader("content-type", "text/xml");
    if (action === undefined) return response.end(description);
    const envelope = `<u:${action}Response xmlns:u="${service}">${await act(action, body)}</u:${action}Response>`;
    return response.end(
      `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>${envelope}</s:Body></s:Envelope>`,
    );
  }).listen(0, inside);
  await once(web, "listening");
  const { port } = web.address() as { port: number };

  const searches = createSocket({ type: "udp4", reuseAddr: true }, (message, { address, port: from }) => {
    if (!message.toString().startsWith("M-SEARCH")) return;
    requests.push("search");
    const lines = [
      "HTTP/1.1 200 OK",
      "CACHE-CONTROL: max-age=1800",
      `LOCATION: http://${inside}:${port}/`,
      `ST: ${device}`,
      "USN: uuid:gateway",
    ];
    searches.send(`${lines.join("\r\n")}\r\n\r\n`, from, address);
  });
  searches.bind(discovery.port, discovery.group);
  await once(searches, "listening");
  searches.addMembership(discovery.group, inside);

  return {
    requests,
    opened,
    async [Symbol.asyncDispose]() {
      searches.close();
      web.closeAllConnections();
      for (const each of [web, ...doors]) each.close();
    },
  };
}

const description = `<?xml version="1.0"?><root xmlns="urn:schemas-upnp-org:device-1-0"><device>
  <deviceType>${device}</deviceType><UDN>uuid:gateway</UDN>
  <serviceList><service><serviceType>${service}</serviceType><serviceId>ip</serviceId>
    <SCPDURL>/scpd</SCPDURL><controlURL>/control</controlURL><eventSubURL>/events</eventSubURL></service></serviceList>
</device></root>`;
