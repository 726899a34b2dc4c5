// A stub or function in a value that is being sent: V8 serializes neither, so a copy of the value has this in its place.
export class Placeholder {
  constructor(cap) {
    this.cap = cap;
  }
}
