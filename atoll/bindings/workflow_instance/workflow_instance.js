// What an instance of a workflow asks of the node (web/workflow/instance.js).
import { defineOp } from "#web/internal/ops.js";

export const beginPass = defineOp("workflow_instance.begin");
export const reportStatus = defineOp("workflow_instance.report");
