// Shared by all tabs: HTTP/1.1 allows six connections to one server, and each tab would take one.
import { Socket, type Link, type Message } from "./socket";

declare const self: { onconnect: (event: MessageEvent) => void; location: Location };
type Asked = { key?: string; open?: string; id?: number; with?: unknown; close?: boolean; bye?: boolean; seen?: boolean };

let socket: Socket | null = null;
let link: Link = "connecting";
let stale: unknown = null; // of the last message about it
let last = 0;
const ports = new Set<MessagePort>();
const owners = new Map<number, { port: MessagePort; id: number }>();

function start(key: string): Socket {
  const url = new URL("stream", self.location.href);
  url.protocol = url.protocol.replace("http", "ws");
  return new Socket(
    url.href,
    key,
    (message: Message) => {
      if (message.stale !== undefined) {
        stale = message.stale;
        for (const port of ports) port.postMessage({ stale });
        return;
      }
      const owner = owners.get(message.id ?? 0);
      owner?.port.postMessage({ ...message, id: owner.id });
    },
    (state, why) => {
      link = state;
      stale = null; // after a greeting the server tells it again
      for (const port of ports) port.postMessage({ link: state, why });
    },
  );
}

self.onconnect = (event) => {
  const port = event.ports[0]!;
  ports.add(port);
  const mine = new Map<number, number>();
  port.onmessage = ({ data }: MessageEvent<Asked>) => {
    if (data.key) {
      if (socket === null) socket = start(data.key);
      else socket.use(data.key);
      port.postMessage({ link });
      port.postMessage({ stale });
    } else if (data.seen) {
      socket?.seen();
    } else if (data.bye) {
      for (const number of mine.values()) { socket?.close(number); owners.delete(number); }
      ports.delete(port);
    } else if (data.close && data.id !== undefined) {
      const number = mine.get(data.id);
      if (number !== undefined) { socket?.close(number); owners.delete(number); mine.delete(data.id); }
    } else if (data.open && data.id !== undefined) {
      const number = ++last;
      mine.set(data.id, number);
      owners.set(number, { port, id: data.id });
      socket?.open(number, data.open, data.with);
    }
  };
};
