// One WebSocket that carries all subscriptions; it connects again by itself and opens them anew.
export type Message = { id?: number; error?: string; [field: string]: unknown };
export type Link = "connecting" | "open" | "lost" | "ended";

const PAUSES = [250, 500, 1000, 2000, 5000, 10000];

export class Socket {
  #inner: WebSocket | null = null;
  #wanted = new Map<number, string>();
  #tries = 0;
  #key: string;

  constructor(
    private readonly url: string,
    key: string,
    private readonly received: (message: Message) => void,
    private readonly linked: (link: Link, why?: string) => void,
  ) {
    this.#key = key;
    this.#connect();
  }

  get key(): string {
    return this.#key;
  }

  use(key: string): void {
    if (key === this.#key) return;
    this.#key = key;
    this.#tries = 0;
    this.#inner?.close();
    this.#connect();
  }

  open(id: number, name: string, options: unknown): void {
    const text = JSON.stringify({ id, open: name, with: options });
    this.#wanted.set(id, text);
    if (this.#inner?.readyState === WebSocket.OPEN && this.#greeted) this.#inner.send(text);
  }

  close(id: number): void {
    if (!this.#wanted.delete(id)) return;
    if (this.#inner?.readyState === WebSocket.OPEN && this.#greeted) {
      this.#inner.send(JSON.stringify({ id, close: true }));
    }
  }

  /** Somebody looks at a page: the session is in use. */
  seen(): void {
    if (this.#inner?.readyState === WebSocket.OPEN && this.#greeted) this.#inner.send('{"seen":true}');
  }

  #greeted = false;

  #connect(): void {
    this.linked("connecting");
    this.#greeted = false;
    const socket = new WebSocket(this.url);
    this.#inner = socket;
    socket.onopen = () => socket.send(JSON.stringify({ key: this.#key }));
    socket.onmessage = (event) => {
      const message = JSON.parse(String(event.data)) as Message & { hello?: boolean };
      if (message.hello) {
        this.#greeted = true;
        this.#tries = 0;
        this.linked("open");
        for (const text of this.#wanted.values()) socket.send(text);
        return;
      }
      this.received(message);
    };
    socket.onclose = (event) => {
      if (socket !== this.#inner) return;
      if (event.code === 4401) {
        this.linked("ended", event.reason);
        return;
      }
      this.linked("lost");
      const pause = PAUSES[Math.min(this.#tries++, PAUSES.length - 1)]!;
      setTimeout(() => socket === this.#inner && this.#connect(), pause);
    };
  }
}
