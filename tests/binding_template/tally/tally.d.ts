// Tallies

interface Tally {
  add(): Promise<number>;
}
