// The ops behind the bookmarks of ctx.storage (web/objects/storage.js). Python knows which object is asking.
import { defineOp } from "#web/internal/ops.js";

export const currentBookmark = defineOp("object_history.current");
export const bookmarkForTime = defineOp("object_history.at");
export const restoreBookmark = defineOp("object_history.restore");
