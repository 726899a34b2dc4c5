// https://nodejs.org/api/v8.html: a worker does not see the heap; numbers are zero.
import { requireFunction, requireString } from "./errors.js";
import { notImplemented } from "./http_common.js";
import { requireBoolean, requireInteger, requireOneOf, requireOptions } from "./validate.js";

const zeros = (...names) => Object.fromEntries(names.map((name) => [name, 0]));

export function cachedDataVersionTag() {
  return 0;
}

export function getHeapStatistics() {
  return zeros(
    "total_heap_size", "total_heap_size_executable", "total_physical_size", "total_available_size", "used_heap_size", "heap_size_limit",
    "malloced_memory", "peak_malloced_memory", "does_zap_garbage", "number_of_native_contexts", "number_of_detached_contexts",
    "total_global_handles_size", "used_global_handles_size", "external_memory",
  );
}

export function getHeapSpaceStatistics() {
  return [];
}

export function getHeapCodeStatistics() {
  return zeros("code_and_metadata_size", "bytecode_and_metadata_size", "external_script_source_size", "cpu_profiler_metadata_size");
}

export function getCppHeapStatistics(type = "detailed") {
  requireOneOf(type, "type", ["brief", "detailed"]);
  return { ...zeros("committed_size_bytes", "resident_size_bytes", "used_size_bytes"), space_statistics: [], type_names: [], detail_level: type };
}

function checkSnapshotOptions(options) {
  requireOptions(options, "options");
  for (const name of ["exposeInternals", "exposeNumericValues"]) {
    if (options[name] !== undefined) requireBoolean(options[name], `options.${name}`);
  }
}

export function writeHeapSnapshot(filename = undefined, options = {}) {
  if (filename !== undefined) requireString(filename, "filename");
  checkSnapshotOptions(options);
  throw notImplemented("writeHeapSnapshot");
}

export function getHeapSnapshot(options = {}) {
  checkSnapshotOptions(options);
  throw notImplemented("getHeapSnapshot");
}

export function setFlagsFromString(flags) {
  requireString(flags, "flags");
  throw notImplemented("setFlagsFromString");
}

export function isStringOneByteRepresentation(content) {
  requireString(content, "content");
  throw notImplemented("isStringOneByteRepresentation");
}

export function setHeapSnapshotNearHeapLimit(limit) {
  requireInteger(limit, "limit", 1, 4294967295);
  throw notImplemented("setHeapSnapshotNearHeapLimit");
}

export function queryObjects(constructor, options = {}) {
  requireFunction(constructor, "constructor");
  requireOptions(options, "options");
  if (options.format !== undefined) requireOneOf(options.format, "options.format", ["count", "summary"]);
  throw notImplemented("queryObjects");
}

export class Serializer {
  constructor() {
    throw notImplemented("Serializer");
  }
}

export class Deserializer {
  constructor() {
    throw notImplemented("Deserializer");
  }
}

export class DefaultSerializer extends Serializer {}

export class DefaultDeserializer extends Deserializer {}

export class GCProfiler {
  start() {
    throw notImplemented("GCProfiler.start");
  }

  stop() {
    throw notImplemented("GCProfiler.stop");
  }
}

const refuse = (name) => () => {
  throw notImplemented(name);
};

export const serialize = refuse("serialize");
export const deserialize = refuse("deserialize");
export const takeCoverage = refuse("takeCoverage");
export const stopCoverage = refuse("stopCoverage");
export const startCpuProfile = refuse("startCpuProfile");

export const promiseHooks = Object.fromEntries(
  ["createHook", "onInit", "onBefore", "onAfter", "onSettled"].map((name) => [name, refuse(`promiseHooks.${name}`)]),
);

export const startupSnapshot = {
  addSerializeCallback: refuse("startupSnapshot.addSerializeCallback"),
  addDeserializeCallback: refuse("startupSnapshot.addDeserializeCallback"),
  setDeserializeMainFunction: refuse("startupSnapshot.setDeserializeMainFunction"),
  isBuildingSnapshot: () => false,
};
