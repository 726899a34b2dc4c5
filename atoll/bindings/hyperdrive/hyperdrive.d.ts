// Hyperdrive

/** A database that was named with `atoll hyperdrive create`. */
interface Hyperdrive {
  readonly connectionString: string;
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  connect(): import("cloudflare:sockets").Socket;
}
