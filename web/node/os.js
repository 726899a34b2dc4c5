// https://nodejs.org/api/os.html: fixed values, because a worker does not see its machine.
export const EOL = "\n";
export const devNull = "/dev/null";
export const constants = {
  signals: { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGKILL: 9, SIGTERM: 15 },
  errno: { ENOENT: 2, EACCES: 13, EEXIST: 17, EINVAL: 22 },
  priority: { PRIORITY_NORMAL: 0 },
};

export const arch = () => "x64";
export const availableParallelism = () => 1;
export const cpus = () => [];
export const endianness = () => "LE";
export const freemem = () => 0;
export const homedir = () => "/";
export const hostname = () => "localhost";
export const loadavg = () => [0, 0, 0];
export const machine = () => "x86_64";
export const networkInterfaces = () => ({});
export const platform = () => "linux";
export const release = () => "";
export const tmpdir = () => "/tmp";
export const totalmem = () => 0;
export const type = () => "Linux";
export const uptime = () => 0;
export const userInfo = () => ({ uid: -1, gid: -1, username: "worker", homedir: "/", shell: null });
export const version = () => "";
