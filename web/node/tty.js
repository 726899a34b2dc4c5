// https://nodejs.org/api/tty.html: a worker has no terminal.
export const isatty = () => false;
