// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_limits.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <thread>

namespace juno {
namespace {

namespace fs = std::filesystem;

// A file system of its own, with this process in the group that the text names.
class Root {
 public:
  explicit Root(const std::string& groups) : path_(fs::temp_directory_path() / fs::path("juno_root_XXXXXX")) {
    std::string name = path_.string();
    path_ = mkdtemp(name.data());
    write("proc/self/cgroup", groups);
  }
  ~Root() { fs::remove_all(path_); }
  Root& write(const std::string& file, const std::string& text) {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
    return *this;
  }
  double quota() const { return cpu_limits(path_).quota; }

 private:
  fs::path path_;
};

TEST(C51, ThreadsAreTheSmallerOfAffinityAndQuotaRoundedUp) {
  EXPECT_EQ((CpuLimits{.affinity = 8, .quota = 0}.threads()), 8);
  EXPECT_EQ((CpuLimits{.affinity = 8, .quota = 2}.threads()), 2);
  EXPECT_EQ((CpuLimits{.affinity = 8, .quota = 1.5}.threads()), 2);
  EXPECT_EQ((CpuLimits{.affinity = 8, .quota = 0.1}.threads()), 1);
  EXPECT_EQ((CpuLimits{.affinity = 1, .quota = 4}.threads()), 1);
  EXPECT_EQ((CpuLimits{.affinity = 8, .quota = 1.5}.text()), "2 threads (affinity 8, quota 1.50)");
  EXPECT_EQ((CpuLimits{.affinity = 1, .quota = 0}.text()), "1 thread (affinity 1, no quota)");
}

TEST(C51, TheQuotaOfAGroupIsRead) {
  EXPECT_EQ(Root("0::/a\n").write("sys/fs/cgroup/a/cpu.max", "200000 100000\n").quota(), 2);
  EXPECT_EQ(Root("0::/a\n").write("sys/fs/cgroup/a/cpu.max", "max 100000\n").quota(), 0);
  Root v1("3:cpu,cpuacct:/a\n2:memory:/a\n");
  v1.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(v1.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n").quota(), 1.5);
  Root none("3:cpu:/a\n");
  none.write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(none.write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n").quota(), 0);
}

TEST(C51, TheLeastQuotaOfAllLevelsCounts) {
  Root root("0::/pod/box\n");
  root.write("sys/fs/cgroup/pod/cpu.max", "100000 100000\n")
      .write("sys/fs/cgroup/pod/box/cpu.max", "400000 100000\n");
  EXPECT_EQ(root.quota(), 1);
}

// A container often sees its host's path, but only its own group mounted.
TEST(C51, AGroupThatIsMountedElsewhereIsFoundAtTheTop) {
  EXPECT_EQ(Root("0::/host/path\n").write("sys/fs/cgroup/cpu.max", "300000 100000\n").quota(), 3);
}

TEST(C51, NonsenseIsNoLimit) {
  EXPECT_EQ(Root("").quota(), 0);
  EXPECT_EQ(Root("garbage\n::\n0::\n").write("sys/fs/cgroup/cpu.max", "x y").quota(), 0);
  EXPECT_EQ(Root("0::/a\n").write("sys/fs/cgroup/a/cpu.max", "100 0\n").quota(), 0);
}

TEST(C51, AnAffinityOfOneProcessorIsOneThread) {
  int count = 0;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    count = cpu_limits().affinity;
  }).join();
  EXPECT_EQ(count, 1);
  EXPECT_GE(cpu_limits().threads(), 1);
}

}  // namespace
}  // namespace juno
