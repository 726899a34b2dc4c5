// Analytics Engine

interface AnalyticsEngineDataPoint {
  /** At most one, of up to 96 bytes. */
  indexes?: ((ArrayBuffer | string) | null)[];
  /** Up to 20 numbers. */
  doubles?: number[];
  /** Up to 20 texts, together of up to 16,000 bytes. */
  blobs?: ((ArrayBuffer | string) | null)[];
}

/** A dataset, queried with `atoll analytics sql`. */
interface AnalyticsEngineDataset {
  /** Returns at once. */
  writeDataPoint(event?: AnalyticsEngineDataPoint): void;
}
