// Workflows

type WorkflowDurationLabel = "second" | "minute" | "hour" | "day" | "week" | "month" | "year";
type WorkflowSleepDuration = `${number} ${WorkflowDurationLabel}` | `${number} ${WorkflowDurationLabel}s` | number;
type WorkflowRetentionDuration = WorkflowSleepDuration;

interface WorkflowInstanceCreateOptions<Params = unknown> {
  /** Up to 100 letters, digits, dashes and _. Without it: a UUID. */
  id?: string;
  params?: Params;
  retention?: { successRetention?: WorkflowRetentionDuration; errorRetention?: WorkflowRetentionDuration };
}

interface WorkflowInstanceStatus {
  status: "queued" | "running" | "paused" | "errored" | "terminated" | "complete" | "waiting" | "waitingForPause" | "unknown";
  error: { name: string; message: string } | null;
  output: unknown;
}

interface WorkflowInstanceRestartOptions {
  from?: { name: string; count?: number; type?: "do" | "sleep" | "waitForEvent" };
}

interface WorkflowInstance {
  readonly id: string;
  status(): Promise<WorkflowInstanceStatus>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  terminate(): Promise<void>;
  restart(options?: WorkflowInstanceRestartOptions): Promise<void>;
  delete(): Promise<void>;
  sendEvent(event: { type: string; payload: unknown }): Promise<void>;
}

interface Workflow<Params = unknown> {
  create(options?: WorkflowInstanceCreateOptions<Params>): Promise<WorkflowInstance>;
  /** At most 100. Instances that exist already are left out. */
  createBatch(batch: WorkflowInstanceCreateOptions<Params>[]): Promise<WorkflowInstance[]>;
  get(id: string): Promise<WorkflowInstance>;
  deleteBatch(ids: string[]): Promise<void>;
}
