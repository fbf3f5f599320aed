"""What tests may use of imported modules without any chance that a text of the answer is run, imported or opened.

Everything here treats what it is given as data. What is not here may not, and counts as if it did (uses.py): SymPy
makes code of every text that it is given, pandas' `query` does, `subprocess` and `runpy` do, and no list of those
would ever be complete. To add a name, look at what it does with a text: it may not reach `eval`, an import by name, an
attribute that is called, or a file that it opens to write.
"""

from __future__ import annotations

_MODULES = """
abc: ABC ABCMeta abstractclassmethod abstractmethod abstractproperty abstractstaticmethod get_cache_token
    update_abstractmethods
array: ArrayType array typecodes
ast: dump literal_eval parse unparse walk
asyncio: Event Lock Queue Semaphore TimeoutError create_task gather iscoroutinefunction run sleep wait wait_for
base64: a85decode a85encode b16decode b16encode b32decode b32encode b32hexdecode b32hexencode b64decode b64encode
    b85decode b85encode decode decodebytes encode encodebytes standard_b64decode standard_b64encode urlsafe_b64decode
    urlsafe_b64encode
binascii: Error Incomplete a2b_base64 a2b_hex a2b_qp a2b_uu b2a_base64 b2a_hex b2a_qp b2a_uu crc32 crc_hqx hexlify
    unhexlify
bisect: bisect bisect_left bisect_right insort insort_left insort_right
calendar: Calendar FRIDAY HTMLCalendar IllegalMonthError IllegalWeekdayError LocaleHTMLCalendar LocaleTextCalendar
    MONDAY SATURDAY SUNDAY THURSDAY TUESDAY TextCalendar WEDNESDAY calendar day_abbr day_name firstweekday isleap
    leapdays month month_abbr month_name monthcalendar monthrange prcal prmonth setfirstweekday timegm weekday
    weekheader
cmath: acos acosh asin asinh atan atanh cos cosh e exp inf infj isclose isfinite isinf isnan log log10 nan nanj phase
    pi polar rect sin sinh sqrt tan tanh tau
collections: ChainMap Counter OrderedDict UserDict UserList UserString defaultdict deque namedtuple
collections.abc: AsyncGenerator AsyncIterable AsyncIterator Awaitable ByteString Callable Collection Container
    Coroutine Generator Hashable ItemsView Iterable Iterator KeysView Mapping MappingView MutableMapping
    MutableSequence MutableSet Reversible Sequence Set Sized ValuesView
concurrent.futures: ThreadPoolExecutor as_completed wait
contextlib: AbstractAsyncContextManager AbstractContextManager AsyncExitStack ContextDecorator ExitStack aclosing
    asynccontextmanager closing contextmanager nullcontext redirect_stderr redirect_stdout suppress
copy: Error copy deepcopy
csv: DictReader DictWriter Error QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC reader writer
dataclasses: Field FrozenInstanceError InitVar KW_ONLY MISSING asdict astuple dataclass field fields is_dataclass
    replace
datetime: MAXYEAR MINYEAR UTC date datetime time timedelta timezone tzinfo
decimal: BasicContext Clamped Context ConversionSyntax Decimal DecimalException DecimalTuple DefaultContext
    DivisionByZero DivisionImpossible DivisionUndefined ExtendedContext FloatOperation HAVE_CONTEXTVAR HAVE_THREADS
    Inexact InvalidContext InvalidOperation MAX_EMAX MAX_PREC MIN_EMIN MIN_ETINY Overflow ROUND_05UP ROUND_CEILING
    ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP Rounded Subnormal Underflow
    getcontext localcontext setcontext
difflib: Differ HtmlDiff IS_CHARACTER_JUNK IS_LINE_JUNK Match SequenceMatcher context_diff diff_bytes
    get_close_matches ndiff restore unified_diff
enum: CONFORM CONTINUOUS EJECT Enum EnumCheck EnumMeta EnumType Flag FlagBoundary IntEnum IntFlag KEEP NAMED_FLAGS
    ReprEnum STRICT StrEnum UNIQUE auto global_enum global_enum_repr global_flag_repr global_str member nonmember
    pickle_by_enum_name pickle_by_global_name property unique verify
fractions: Fraction
functools: WRAPPER_ASSIGNMENTS WRAPPER_UPDATES cache cached_property cmp_to_key lru_cache partial partialmethod reduce
    total_ordering update_wrapper wraps
hashlib: algorithms_available algorithms_guaranteed blake2b blake2s file_digest md5 new pbkdf2_hmac sha1 sha224 sha256
    sha384 sha3_224 sha3_256 sha3_384 sha3_512 sha512 shake_128 shake_256
heapq: heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest
inspect: isabstract isawaitable isbuiltin isclass iscoroutine iscoroutinefunction isfunction isgenerator
    isgeneratorfunction ismethod ismodule isroutine
io: BytesIO SEEK_CUR SEEK_END SEEK_SET StringIO
itertools: accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile
    filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest
json: JSONDecodeError JSONDecoder JSONEncoder dump dumps load loads
keyword: iskeyword issoftkeyword kwlist softkwlist
math: acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf erfc exp exp2 expm1
    fabs factorial floor fma fmod frexp fsum gamma gcd hypot inf isclose isfinite isinf isnan isqrt lcm ldexp lgamma
    log log10 log1p log2 modf nan nextafter perm pi pow prod radians remainder sin sinh sqrt sumprod tan tanh tau
    trunc ulp
numbers: Complex Integral Number Rational Real
numpy: False_ Inf Infinity NaN ScalarType True_ abs absolute acos acosh add all allclose alltrue amax amin angle any
    append apply_along_axis apply_over_axes arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin
    argpartition argsort argwhere around array array2string array_equal array_equiv array_repr array_split array_str
    asanyarray asarray asarray_chkfinite ascontiguousarray asfarray asfortranarray asin asinh asmatrix asscalar astype
    atan atan2 atanh atleast_1d atleast_2d atleast_3d average bartlett base_repr binary_repr bincount bitwise_and
    bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman
    block bool bool_ broadcast broadcast_arrays broadcast_shapes broadcast_to busday_count busday_offset
    busdaycalendar byte bytes_ can_cast cbrt cdouble ceil character choose clip clongdouble column_stack
    common_type complex128 complex256 complex64 complexfloating compress concat concatenate conj conjugate convolve
    copy copysign copyto corrcoef correlate cos cosh count_nonzero cov cross csingle cumprod cumproduct cumsum
    cumulative_prod cumulative_sum datetime64 datetime_as_string datetime_data deg2rad degrees delete diag
    diag_indices diag_indices_from diagflat diagonal diff digitize divide divmod dot double dsplit dstack dtype e
    ediff1d einsum einsum_path empty empty_like equal errstate euler_gamma exp exp2 expand_dims expm1 extract eye fabs
    fill_diagonal finfo fix flatiter flatnonzero flexible flip fliplr flipud float128 float16 float32 float64 float_
    float_power floating floor floor_divide fmax fmin fmod format_float_positional format_float_scientific frexp
    from_dlpack frombuffer fromfunction fromiter frompyfunc fromstring full full_like gcd generic geomspace
    get_printoptions getbufsize geterr gradient greater greater_equal half hamming hanning heaviside histogram
    histogram2d histogram_bin_edges histogramdd hsplit hstack hypot i0 identity iinfo imag in1d index_exp indices
    inexact inf infty inner insert int16 int32 int64 int8 int_ intc integer interp intersect1d intp invert is_busday
    isclose iscomplex iscomplexobj isdtype isfinite isfortran isin isinf isnan isnat isneginf isposinf isreal
    isrealobj isscalar issubclass_ issubdtype iterable ix_ kaiser kron lcm ldexp left_shift less less_equal lexsort
    linspace little_endian log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor
    logspace long longdouble longlong mask_indices mat matmul matrix matrix_transpose matvec max maximum
    may_share_memory mean median meshgrid mgrid min min_scalar_type minimum mintypecode mod modf moveaxis msort
    multiply nan nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile
    nanprod nanquantile nanstd nansum nanvar ndarray ndenumerate ndim ndindex nditer negative nested_iters newaxis
    nextafter nonzero not_equal number object_ ogrid ones ones_like outer packbits pad partition percentile
    permute_dims pi piecewise place poly poly1d polyadd polyder polydiv polyfit polyint polymul polysub polyval
    positive pow power printoptions prod product promote_types ptp put put_along_axis putmask quantile rad2deg
    radians ravel ravel_multi_index real real_if_close recarray reciprocal record remainder repeat require reshape
    resize result_type right_shift rint roll rollaxis roots rot90 round round_ row_stack s_ sctypeDict searchsorted
    select set_printoptions setdiff1d seterr setxor1d shape shares_memory short sign signbit signedinteger sin sinc
    single sinh size sometrue sort sort_complex spacing split sqrt square squeeze stack std str_ subtract sum swapaxes
    take take_along_axis tan tanh tensordot tile timedelta64 trace transpose trapezoid trapz tri tril tril_indices
    tril_indices_from trim_zeros triu triu_indices triu_indices_from true_divide trunc typecodes typename ubyte ufunc
    uint uint16 uint32 uint64 uint8 uintc uintp ulong ulonglong unicode_ union1d unique unique_all unique_counts
    unique_inverse unique_values unpackbits unravel_index unsignedinteger unstack unwrap ushort vander var vdot vecdot
    vecmat vectorize void vsplit vstack where zeros zeros_like
numpy.exceptions: AxisError ComplexWarning DTypePromotionError ModuleDeprecationWarning RankWarning TooHardError
    VisibleDeprecationWarning
numpy.fft: fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2
    rfftfreq rfftn
numpy.linalg: LinAlgError cholesky cond cross det diagonal eig eigh eigvals eigvalsh inv lstsq matmul matrix_norm
    matrix_power matrix_rank matrix_transpose multi_dot norm outer pinv qr slogdet solve svd svdvals tensordot
    tensorinv tensorsolve trace vecdot vector_norm
numpy.polynomial: Chebyshev Hermite HermiteE Laguerre Legendre Polynomial set_default_printstyle
numpy.polynomial.polynomial: ABCPolyBase Polynomial polyadd polycompanion polyder polydiv polydomain polyfit
    polyfromroots polygrid2d polygrid3d polyint polyline polymul polymulx polyone polypow polyroots polysub polytrim
    polyval polyval2d polyval3d polyvalfromroots polyvander polyvander2d polyvander3d polyx polyzero
numpy.random: Generator MT19937 PCG64 PCG64DXSM Philox RandomState SFC64 SeedSequence beta binomial bytes chisquare
    choice default_rng dirichlet exponential f gamma geometric get_bit_generator get_state gumbel hypergeometric
    laplace logistic lognormal logseries multinomial multivariate_normal negative_binomial noncentral_chisquare
    noncentral_f normal pareto permutation poisson power rand randint randn random random_integers random_sample ranf
    rayleigh sample seed set_bit_generator set_state shuffle standard_cauchy standard_exponential standard_gamma
    standard_normal standard_t triangular uniform vonmises wald weibull zipf
numpy.testing: assert_ assert_allclose assert_almost_equal assert_approx_equal assert_array_almost_equal
    assert_array_almost_equal_nulp assert_array_compare assert_array_equal assert_array_less assert_array_max_ulp
    assert_equal assert_no_gc_cycles assert_no_warnings assert_raises assert_raises_regex assert_string_equal
operator: abs add and_ call concat contains countOf delitem eq floordiv ge getitem gt iadd iand iconcat ifloordiv
    ilshift imatmul imod imul index indexOf inv invert ior ipow irshift is_ is_not isub itemgetter itruediv ixor le
    length_hint lshift lt matmul mod mul ne neg not_ or_ pos pow rshift setitem sub truediv truth xor
os: cpu_count curdir environ fspath getcwd getenv getpid linesep name pardir pathsep sep urandom
os.path: abspath basename commonpath commonprefix dirname exists expanduser getsize isabs isdir isfile join normpath
    realpath relpath sep split splitext
pandas: ArrowDtype BooleanDtype Categorical CategoricalDtype CategoricalIndex DataFrame DateOffset DatetimeIndex
    DatetimeTZDtype Float32Dtype Float64Dtype Grouper Index IndexSlice Int16Dtype Int32Dtype Int64Dtype Int8Dtype
    Interval IntervalDtype IntervalIndex MultiIndex NA NaT NamedAgg Period PeriodDtype PeriodIndex RangeIndex Series
    StringDtype Timedelta TimedeltaIndex Timestamp UInt16Dtype UInt32Dtype UInt64Dtype UInt8Dtype array bdate_range
    concat crosstab cut date_range factorize from_dummies get_dummies infer_freq interval_range isna isnull
    json_normalize lreshape melt merge merge_asof merge_ordered notna notnull period_range pivot pivot_table qcut
    read_csv read_json timedelta_range to_datetime to_numeric to_timedelta unique wide_to_long
pandas.api.types: is_bool_dtype is_categorical_dtype is_datetime64_any_dtype is_float_dtype is_integer_dtype
    is_list_like is_numeric_dtype is_object_dtype is_scalar is_string_dtype
pandas.testing: assert_frame_equal assert_index_equal assert_series_equal
pytest: approx fail fixture mark param raises skip warns
queue: Empty Full LifoQueue PriorityQueue Queue SimpleQueue
random: Random SystemRandom betavariate choice choices expovariate gammavariate gauss getrandbits getstate
    lognormvariate normalvariate paretovariate randbytes randint random randrange sample seed setstate shuffle
    triangular uniform vonmisesvariate weibullvariate
re: A ASCII DEBUG DOTALL I IGNORECASE L LOCALE M MULTILINE Match NOFLAG Pattern RegexFlag S U UNICODE VERBOSE X
    compile error escape findall finditer fullmatch match purge search split sub subn template
scipy.special: binom comb digamma erf erfc expit factorial factorial2 gamma gammaln perm softmax
secrets: SystemRandom choice compare_digest randbelow randbits token_bytes token_hex token_urlsafe
statistics: NormalDist StatisticsError correlation covariance fmean geometric_mean harmonic_mean kde kde_random
    linear_regression mean median median_grouped median_high median_low mode multimode pstdev pvariance quantiles
    stdev variance
string: Formatter Template ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits printable
    punctuation whitespace
struct: Struct calcsize error iter_unpack pack pack_into unpack unpack_from
sympy: isprime
sys: argv byteorder exit float_info get_int_max_str_digits getrecursionlimit getsizeof hash_info implementation
    int_info intern maxsize maxunicode platform set_int_max_str_digits setrecursionlimit stderr stdin stdout version
    version_info
tempfile: NamedTemporaryFile TemporaryDirectory TemporaryFile gettempdir mkdtemp mkstemp
textwrap: TextWrapper dedent fill indent shorten wrap
threading: Barrier Condition Event Lock RLock Semaphore Thread Timer current_thread
time: altzone asctime clock_getres clock_gettime clock_gettime_ns ctime daylight get_clock_info gmtime localtime
    mktime monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns sleep strftime strptime
    struct_time thread_time thread_time_ns time time_ns timezone tzname tzset
traceback: format_exc print_exc
types: BuiltinFunctionType CoroutineType FunctionType GeneratorType LambdaType MappingProxyType MethodType ModuleType
    NoneType SimpleNamespace
typing: Annotated Any AnyStr AsyncGenerator AsyncIterable AsyncIterator Awaitable BinaryIO ByteString Callable
    ChainMap ClassVar Collection Concatenate Container Coroutine Counter DefaultDict Deque Dict Final FrozenSet
    Generator Generic Hashable IO ItemsView Iterable Iterator KeysView List Literal Mapping Match MutableMapping
    MutableSequence MutableSet NamedTuple Never NewType NoReturn Optional OrderedDict ParamSpec Pattern Protocol
    Reversible Self Sequence Set Sized SupportsAbs SupportsFloat SupportsIndex SupportsInt TYPE_CHECKING Text TextIO
    Tuple Type TypeAlias TypeGuard TypeVar TypeVarTuple TypedDict Union ValuesView assert_never cast final get_args
    get_origin no_type_check overload runtime_checkable
unicodedata: UCD bidirectional category combining decimal decomposition digit east_asian_width is_normalized lookup
    mirrored name normalize numeric ucd_3_2_0 unidata_version
unittest: IsolatedAsyncioTestCase SkipTest TestCase TestLoader TestResult TestSuite TextTestRunner defaultTestLoader
    expectedFailure main skip skipIf skipUnless
uuid: UUID uuid1 uuid3 uuid4 uuid5
warnings: catch_warnings filterwarnings formatwarning resetwarnings simplefilter warn warn_explicit
"""
_OF_OBJECTS = """
T a abs addClassCleanup addCleanup addTest addTests addTypeEqualityFunc add_categories add_prefix add_suffix agg
aggregate align all any apply argmax argmin argpartition argsort array as_ordered as_unit as_unordered asfreq asm8
asof asof_locs assertAlmostEqual assertAlmostEquals assertCountEqual assertDictContainsSubset assertDictEqual
assertEqual assertEquals assertFalse assertGreater assertGreaterEqual assertIn assertIs assertIsInstance assertIsNone
assertIsNot assertIsNotNone assertLess assertLessEqual assertListEqual assertLogs assertMultiLineEqual assertNoLogs
assertNotAlmostEqual assertNotAlmostEquals assertNotEqual assertNotEquals assertNotIn assertNotIsInstance
assertNotRegex assertNotRegexpMatches assertRaises assertRaisesRegex assertRaisesRegexp assertRegex
assertRegexpMatches assertSequenceEqual assertSetEqual assertTrue assertTupleEqual assertWarns assertWarnsRegex
assert_ assign astimezone astype at at_time attrs autocorr axes b base between between_time bfill byteswap case_when
cat categories ceil check_for_ordered choose clip closed codes columns combine combine_first compare components
compress conj contains convert_dtypes corr corrwith countTestCases cov ctime cumcount cummax cummin cumprod cumsum
data date day day_name day_of_week day_of_year dayofweek dayofyear days days_in_month daysinmonth debug
defaultTestResult delete describe device diagonal diff div divide divmod doClassCleanups doCleanups dot drop
drop_duplicates droplevel dropna dst dtype dtypes duplicated empty end_time enterClassContext enterContext eq
equal_levels equals errors ewm exception exceptions exclusions expanding explode extract extractall factorize fail
failIf failIfAlmostEqual failIfEqual failUnless failUnlessAlmostEqual failUnlessEqual failUnlessRaises
failureException failures ffill fill fillna filter findall first first_valid_index flags flat flatten floor floordiv
fold freq freqstr from_arrays from_arrow from_codes from_dict from_frame from_product from_range from_records
from_tuples fromisocalendar fromisoformat fromordinal fromtimestamp fullmatch ge get_dummies get_group get_indexer
get_indexer_for get_indexer_non_unique get_level_values get_loc get_loc_level get_locs get_slice_bound getfield
groupby groups gt has_duplicates hasnans head hour iat id identical idxmax idxmin iloc infer_objects inferred_type
interpolate is_ is_leap_year is_monotonic_decreasing is_monotonic_increasing is_month_end is_month_start
is_quarter_end is_quarter_start is_unique is_year_end is_year_start isetitem isin isna isnull isocalendar isoformat
isoweekday item iterrows itertuples kurt kurtosis last last_valid_index le len levels levshape list
loadTestsFromTestCase loc longMessage lt mT mad map mask match max maxDiff mean median melt memory_usage merge method
microsecond microseconds min min_periods minute mod mode month month_name mul multiply name names nanosecond
nanoseconds ne ngroup ngroups nlargest nlevels nonzero normalize notna notnull now nsmallest nth nunique ohlc on
ordered ordinal output pad pct_change pivot pivot_table pow prod product put putmask quantile quarter qyear radd rank
ravel rdiv rdivmod records reindex reindex_like remove_categories remove_unused_categories remove_unused_levels rename
rename_axis rename_categories reorder_categories reorder_levels repeat resample reset_index reshape resize resolution
resolution_string rfloordiv rmod rmul rolling round rpow rsub rtruediv run sample searchsorted second seconds select
select_dtypes sem setUp setUpClass set_axis set_categories set_codes set_flags set_index set_levels set_names
set_ordered setfield setflags shift shortDescription size skew skipTest skipped slice slice_indexer slice_locs
slice_replace sort_index sort_values sortlevel sortorder squeeze stack start_time std str strftime strptime sub
subTest subtract sum swapaxes swaplevel tail take tearDown tearDownClass testsRun time timestamp timetuple timetz
to_datetime64 to_device to_dict to_flat_index to_frame to_julian_date to_list to_numpy to_period to_pydatetime
to_pytimedelta to_series to_timedelta64 to_timestamp today toordinal total_seconds trace transform transpose truediv
truncate tz tz_convert tz_localize tzinfo tzname unique unit unstack utcfromtimestamp utcnow utcoffset utctimetuple
value value_counts var view warnings wasSuccessful week weekday weekofyear where win_type window wrap xs year
"""


def _read(text: str) -> dict[str, frozenset[str]]:
    """A module begins a line, and its names go on behind it."""
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for word in text.split():
        if word.endswith(":"):
            names = found[word[:-1]] = []
        else:
            names.append(word)
    return {module: frozenset(words) for module, words in found.items()}


MODULES = _read(_MODULES)
"""Of each module the names that treat values as data, whatever the values are."""
RICH = frozenset({"numpy", "pandas", "pytest", "scipy", "sympy", "unittest"})
"""Packages whose objects have methods that run, import or open what they are given."""
WHOLE = frozenset(name for name in MODULES if name.partition(".")[0] not in RICH) - {
    "ast", "asyncio", "inspect", "io", "os", "os.path", "sys", "tempfile", "threading", "types",
}  # fmt: skip
"""Modules that bring nothing else with `import *`, or only what is known by its name (evaluating.py)."""
_BUILT_IN = (
    str, bytes, bytearray, list, tuple, dict, set, frozenset, int, float, complex, range, slice, memoryview,
    BaseException,
)  # fmt: skip
METHODS = frozenset(_OF_OBJECTS.split()).union(*map(dir, _BUILT_IN), *MODULES.values()) - {"dump", "dumps", "load"}
"""Methods and fields that treat values as data, of objects of these packages and of Python's own; arrays
dump themselves into files."""
DUNDERS = frozenset(name for name in METHODS if name.startswith("__")).union(
    ("__name__", "__qualname__", "__module__", "__version__", "__file__", "__annotations__", "__call__", "__next__"),
    ("__slots__", "__wrapped__", "__all__", "__post_init__", "__array__", "__bool__", "__matmul__", "__dict__"),
    ("__enter__", "__exit__", "__await__", "__aiter__", "__anext__", "__missing__", "__defaults__"),
) - {"__getattribute__", "__setattr__", "__delattr__", "__setstate__", "__init_subclass__", "__subclasshook__"}
"""Names of Python's own that lead to no function by its name, and to no module."""
