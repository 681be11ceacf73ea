/**
 * A file server on this machine that misbehaves as it is told: it is made of bare connections, so
 * that it can cut them, fall silent, and lie about lengths.
 */
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";

export interface Asked {
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Which request of this server it is, from 0. */
  readonly index: number;
  /** The bytes that are asked for, up to and without `end`. */
  readonly range: { readonly start: number; readonly end: number } | undefined;
}

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | number>>;
  readonly body?: Uint8Array | string;
  /** Bytes of the body after which the connection is cut. */
  readonly cutAfter?: number;
  /** Bytes of the body after which nothing more comes. */
  readonly silentAfter?: number;
}

export type Behaviour = (asked: Asked) => Answer;

export class FileServer implements AsyncDisposable {
  /** All requests so far. */
  readonly asked: Asked[] = [];
  behave: Behaviour;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(behave: Behaviour) {
    this.behave = behave;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  static async start(behave: Behaviour): Promise<FileServer> {
    const server = new FileServer(behave);
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    let head = "";
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("data", (data) => {
      head += data.toString("latin1");
      const end = head.indexOf("\r\n\r\n");
      if (end < 0) return;
      const asked = parse(head.slice(0, end), this.asked.length);
      head = "";
      this.asked.push(asked);
      send(socket, this.behave(asked));
    });
  }
}

function parse(head: string, index: number): Asked {
  const [first = "", ...lines] = head.split("\r\n");
  const headers = Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf(":");
      return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()];
    }),
  );
  const match = /^bytes=(\d+)-(\d+)$/.exec(headers["range"] ?? "");
  const range = match ? { start: Number(match[1]), end: Number(match[2]) + 1 } : undefined;
  return { path: first.split(" ")[1] ?? "", headers, index, range };
}

/** Every answer ends its connection, so that a length may be left out. */
function send(socket: Socket, { status, headers = {}, body = "", ...faults }: Answer): void {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const { cutAfter, silentAfter } = faults;
  const shown = bytes.subarray(0, cutAfter ?? silentAfter);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${status} Said\r\n${lines.join("")}connection: close\r\n\r\n`);
  if (silentAfter !== undefined) socket.write(shown);
  // A reset would also take away what was sent and not yet read.
  else if (cutAfter === 0) socket.resetAndDestroy();
  else socket.end(shown);
}

/** What a good server answers: the file, or the part that is asked for. */
export function fileAnswer(file: Uint8Array, { range }: Asked, etag = '"v1"'): Answer {
  const headers = { etag, "accept-ranges": "bytes" };
  if (range === undefined) {
    return { status: 200, headers: { ...headers, "content-length": file.length }, body: file };
  }
  if (range.start >= file.length) {
    return { status: 416, headers: { "content-range": `bytes */${file.length}` } };
  }
  const body = file.subarray(range.start, range.end);
  const last = range.start + body.length - 1;
  const place = `bytes ${range.start}-${last}/${file.length}`;
  return {
    status: 206,
    headers: { ...headers, "content-length": body.length, "content-range": place },
    body,
  };
}
