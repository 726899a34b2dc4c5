// Durable Objects

interface DurableObjectId {
  toString(): string;
  equals(other: DurableObjectId): boolean;
  readonly name?: string;
  readonly jurisdiction?: string;
}

interface DurableObjectNamespaceOptions {
  locationHint?: string;
  routingMode?: "primary-only";
}

type DurableObjectStub<Methods = {}> = Service<Omit<Methods, "ctx" | "env" | "alarm" | "webSocketMessage" | "webSocketClose" | "webSocketError">> & {
  readonly id: DurableObjectId;
  readonly name?: string;
};

interface DurableObjectNamespace<Methods = {}> {
  newUniqueId(options?: { jurisdiction?: string }): DurableObjectId;
  idFromName(name: string): DurableObjectId;
  idFromString(id: string): DurableObjectId;
  get(id: DurableObjectId, options?: DurableObjectNamespaceOptions): DurableObjectStub<Methods>;
  getByName(name: string, options?: DurableObjectNamespaceOptions): DurableObjectStub<Methods>;
  jurisdiction(jurisdiction: string): DurableObjectNamespace<Methods>;
}
