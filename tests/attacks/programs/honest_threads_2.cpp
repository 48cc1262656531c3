// 16 threads of C++, and a recursion of 200,000 calls.
// expected: verdict=pass
// stdout: 120 200000\n
#include <cstdio>
#include <thread>
#include <vector>
static long down(long n)
{
    volatile char held[64] = {1};
    return n ? down(n - 1) + held[0] : 0;
}
int main()
{
    std::vector<std::thread> threads;
    int parts[16] = {};
    for (int i = 0; i < 16; i++)
        threads.emplace_back([&parts, i] { parts[i] = i; });
    int sum = 0;
    for (auto &thread : threads)
        thread.join();
    for (int part : parts)
        sum += part;
    std::printf("%d %ld\n", sum, down(200000));
    return 0;
}
