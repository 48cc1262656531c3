// Templates without end.
// compiler_s: 30
// expected: verdict=compile_error|time_limit_wall|time_limit_cpu|memory_limit
// memory_mb: 1500
template <int N, int M> struct Tree {
    typename Tree<N - 1, M * 2>::type left;
    typename Tree<N - 1, M * 2 + 1>::type right;
    typedef Tree type;
};
template <int M> struct Tree<0, M> {
    typedef Tree type;
};
Tree<24, 1> tree;
int main()
{
    return sizeof tree;
}
