// https://wicg.github.io/observable/

declare class Subscriber<Value = any> {
  private constructor();
  next(value: Value): void;
  error(error: any): void;
  complete(): void;
  addTeardown(teardown: () => void): void;
  readonly active: boolean;
  readonly signal: AbortSignal;
}

interface SubscriptionObserver<Value> {
  next?: (value: Value) => void;
  error?: (error: any) => void;
  complete?: () => void;
}

interface ObservableInspector<Value> extends SubscriptionObserver<Value> {
  subscribe?: () => void;
  abort?: (reason: any) => void;
}

interface SubscribeOptions {
  signal?: AbortSignal;
}

type ObservableInput<Value> = Observable<Value> | AsyncIterable<Value> | Iterable<Value> | Promise<Value>;

declare class Observable<Value = any> {
  constructor(callback: (subscriber: Subscriber<Value>) => void);
  static from<Value>(value: ObservableInput<Value>): Observable<Value>;
  subscribe(observer?: ((value: Value) => void) | SubscriptionObserver<Value>, options?: SubscribeOptions): void;
  takeUntil(value: ObservableInput<any>): Observable<Value>;
  map<Result>(mapper: (value: Value, index: number) => Result): Observable<Result>;
  filter(predicate: (value: Value, index: number) => unknown): Observable<Value>;
  take(amount: number): Observable<Value>;
  drop(amount: number): Observable<Value>;
  flatMap<Result>(mapper: (value: Value, index: number) => ObservableInput<Result>): Observable<Result>;
  switchMap<Result>(mapper: (value: Value, index: number) => ObservableInput<Result>): Observable<Result>;
  inspect(inspector?: ((value: Value) => void) | ObservableInspector<Value>): Observable<Value>;
  catch<Result>(callback: (error: any) => ObservableInput<Result>): Observable<Value | Result>;
  finally(callback: () => void): Observable<Value>;
  toArray(options?: SubscribeOptions): Promise<Value[]>;
  forEach(callback: (value: Value, index: number) => void, options?: SubscribeOptions): Promise<void>;
  every(predicate: (value: Value, index: number) => unknown, options?: SubscribeOptions): Promise<boolean>;
  first(options?: SubscribeOptions): Promise<Value>;
  last(options?: SubscribeOptions): Promise<Value>;
  find(predicate: (value: Value, index: number) => unknown, options?: SubscribeOptions): Promise<Value | undefined>;
  some(predicate: (value: Value, index: number) => unknown, options?: SubscribeOptions): Promise<boolean>;
  reduce<Result>(
    reducer: (accumulator: Result, value: Value, index: number) => Result,
    initialValue?: Result,
    options?: SubscribeOptions,
  ): Promise<Result>;
}
